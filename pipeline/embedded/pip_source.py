"""Locked files from the machine's package index, through the pip of the running interpreter and its configuration."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from pipeline.embedded.filecache import FileCache, sha256_of
from pipeline.embedded.locks import LockedSdist, LockedWheel
from pipeline.errors import ServiceError

TIMEOUT_S = 600
NEWEST_GLIBC_MINOR = 36


def fetch_wheels(wheels: Sequence[LockedWheel], python_version: str, cache: FileCache) -> None:
    """Make every wheel be in the cache: `pip download` with hashes for those that are not. `python_version` like 3.11.

    ServiceError when the index does not answer or lacks a file; IntegrityError when it serves other bytes.
    """
    absent = [wheel for wheel in wheels if not cache.has(wheel.sha256)]
    if not absent:
        return
    with cache.scratch() as folder:
        requirements = Path(folder, "absent.lock")
        requirements.write_text("".join(f"{wheel.requirement}\n" for wheel in absent), encoding="utf-8")
        _run([*_pip_download(python_version), "-d", f"{folder}/files", "-r", str(requirements)], "")
        by_hash = {sha256_of(path): path for path in Path(folder, "files").iterdir()}
        for wheel in absent:
            if wheel.sha256 not in by_hash:
                raise ServiceError(
                    f"pip did not fetch {wheel.name} {wheel.version}", remedy="look at pip's configuration"
                )
            cache.add(by_hash[wheel.sha256], wheel.sha256)


def fetch_sdists(project: str, sdists: Iterable[LockedSdist], cache: FileCache) -> None:
    """Make every sdist be in the cache. Nothing of a project is built or executed. Errors as `fetch_wheels`."""
    absent = {sdist.file_name: sdist.sha256 for sdist in sdists if not cache.has(sdist.sha256)}
    if not absent:
        return
    with cache.scratch() as folder:
        program = Path(__file__).with_name("pip_sdists.py")
        request = json.dumps({"project": project, "files": absent, "destination": folder})
        answer = json.loads(_run([sys.executable, "-I", str(program)], request))
        if answer["missing"]:
            raise ServiceError(
                f"the package index has no {', '.join(answer['missing'])}",
                where=project,
                remedy="the lock names a file that was withdrawn, or pip is configured with an index that lacks it",
            )
        for name, sha256 in absent.items():
            cache.add(Path(folder, name), sha256)


def _pip_download(python_version: str) -> list[str]:
    platforms = [f"manylinux_2_{minor}_x86_64" for minor in range(NEWEST_GLIBC_MINOR, 4, -1)]
    platforms += ["manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64"]
    command = [sys.executable, "-I", "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    command += ["--only-binary=:all:", "--no-input", "--implementation=cp", f"--python-version={python_version}"]
    return [*command, *(f"--platform={platform}" for platform in platforms)]


def _run(command: list[str], stdin: str) -> str:
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise ServiceError(
            f"pip did not finish in {TIMEOUT_S} s", remedy="try again; the package index is slow"
        ) from error
    if done.returncode != 0:
        raise ServiceError(
            f"pip failed: {_last_lines(done.stderr)}",
            remedy="see `pip config list`; the package index must be reachable",
        )
    return done.stdout


def _last_lines(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-3:])[:600] or "no message"
