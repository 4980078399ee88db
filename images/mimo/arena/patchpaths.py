"""The paths that a git patch touches, read from its headers as git writes them."""

from __future__ import annotations

import re

_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_HEADERS = ("--- ", "+++ ", "rename from ", "rename to ", "copy from ", "copy to ")


def touched_paths(patch: str) -> tuple[str, ...]:
    """Paths relative to the repository, sorted; both names of a rename. ValueError for a path outside it."""
    paths: set[str] = set()
    in_hunk = [0, 0]
    for line in patch.split("\n"):
        if in_hunk[0] > 0 or in_hunk[1] > 0:
            _count(line, in_hunk)
        elif line.startswith("@@ "):
            in_hunk = _hunk_lengths(line)
        elif line.startswith("diff --git "):
            paths.update(_of_git_header(line))
        elif line.startswith(_HEADERS):
            paths.update(_of_header(line))
    for path in paths:
        if path.startswith("/") or {"", ".", "..", ".git"} & set(path.split("/")):
            raise ValueError(f"the patch touches {path!r}")
    return tuple(sorted(paths))


def _of_header(line: str) -> set[str]:
    prefix = next(header for header in _HEADERS if line.startswith(header))
    name = _unquoted(line[len(prefix) :].split("\t")[0])
    if name == "/dev/null":
        return set()
    return {name if prefix.endswith(("from ", "to ")) else name.partition("/")[2]}


def _of_git_header(line: str) -> set[str]:
    """For a change of mode or an empty file there is no other header. Both names are equal then, but for a/ and b/."""
    names = line[len("diff --git ") :]
    quoted = _QUOTED.findall(names)
    if quoted:
        return {_unquoted(f'"{name}"').partition("/")[2] for name in quoted}
    half = (len(names) - 1) // 2
    left, right = names[:half].partition("/")[2], names[half + 1 :].partition("/")[2]
    return {left} if left == right else set()


def _unquoted(name: str) -> str:
    match = _QUOTED.fullmatch(name)
    if match is None:
        return name
    raw = re.sub(r"\\([0-7]{3}|.)", lambda found: _character(found[1]), match[1])
    return raw.encode("latin-1", "surrogateescape").decode("utf-8", "surrogateescape")


def _character(escape: str) -> str:
    return chr(int(escape, 8)) if len(escape) == 3 else chr(_ESCAPES[escape])


def _hunk_lengths(line: str) -> list[int]:
    match = re.match(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", line)
    if match is None:
        raise ValueError(f"not a hunk header: {line[:80]!r}")
    return [int(count) if count is not None else 1 for count in match.groups()]


def _count(line: str, left: list[int]) -> None:
    if line.startswith("\\"):
        return
    if not line.startswith("+"):
        left[0] -= 1
    if not line.startswith("-"):
        left[1] -= 1
