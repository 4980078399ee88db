"""A repository of 20,000 commits, the same on every machine, whose last 5,000 are the future; made by git fast-import.

2,000 files in 400 folders; each commit changes one or two of them, so that the whole is about 140,000 objects.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.adapters.machine import run_timed
from pipeline.embedded.process import find_program

COMMITS, FUTURE = 20_000, 5_000
BASE, NEXT = "refs/heads/main", "refs/heads/next"
_VERSION = "1"
_FILES, _LINES = 2000, 24
_START_S = 1_400_000_000


@dataclass(frozen=True)
class MadeHistory:
    """A bare repository whose HEAD is the base commit, and what is beyond it on another branch."""

    path: Path
    base_commit: str


def large_history(folder: Path, commits: int = COMMITS, future: int = FUTURE) -> MadeHistory:
    """The repository in `folder`, made there when it is not yet; about 20 s the first time."""
    path = folder / f"history-{_VERSION}-{commits}-{future}"
    if not path.is_dir():
        partial = path.with_name(f"{path.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        _git(partial, "init", "-q", "--bare", "-b", "main", ".")
        _git(partial, "fast-import", "--quiet", stdin=b"".join(make_stream(commits, future)))
        _git(partial, "-c", "pack.threads=1", "repack", "-q", "-a", "-d", "-f", "--depth=50", "--window=10")
        partial.rename(path)
    return MadeHistory(path, _git(path, "rev-parse", BASE).decode().strip())


def make_stream(commits: int, future: int) -> Iterator[bytes]:
    """What git fast-import reads. https://git-scm.com/docs/git-fast-import"""
    versions = [0] * _FILES
    for number in range(commits):
        branch = BASE if number < commits - future else NEXT
        yield _commit(number, branch, first=number == commits - future)
        for file in _changed(number):
            versions[file] += 1
            text = _content(file, versions[file])
            yield f"M 100644 inline {_path(file)}\ndata {len(text)}\n{text}\n".encode()


def _commit(number: int, branch: str, *, first: bool) -> bytes:
    message = f"Change {number}"
    who = f"A Person <person@example.org> {_START_S + 600 * number} +0000"
    parent = f"from {BASE}\n" if first else ""
    return f"commit {branch}\nauthor {who}\ncommitter {who}\ndata {len(message)}\n{message}\n{parent}".encode()


def _changed(number: int) -> list[int]:
    if number == 0:
        return list(range(_FILES))
    one, other = number * 7919 % _FILES, (number * 104_729 + 1) % _FILES
    return [one] if number % 3 == 0 or one == other else [one, other]


def _content(file: int, version: int) -> str:
    # one line in each version changes, as a repair does; the others stay
    return "".join(f"value_{file}_{line} = {file * line + _last(line, version)}\n" for line in range(_LINES))


def _last(line: int, version: int) -> int:
    return max(0, version - (version - line) % _LINES) if version >= line else 0


def _path(file: int) -> str:
    return f"part{file % 20}/area{file // 20 % 20}/file{file}.py"


def _git(folder: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    program = find_program("git", "git")
    clean = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "LC_ALL": "C"}
    return run_timed([program, *arguments], folder=folder, variables=clean, stdin=stdin).output
