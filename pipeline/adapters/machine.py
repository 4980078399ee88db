"""This machine: what it is, how busy it is, and commands on it that are timed from outside."""

from __future__ import annotations

import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import PipelineError, ServiceError

_LAST_BYTES = 2000


@dataclass(frozen=True)
class Machine:
    """What a figure depends on. `cores` are those that this process may use; no host name."""

    cores: int
    memory_bytes: int
    kernel: str
    python: str
    system: str


@dataclass(frozen=True)
class Ran:
    """A command that ended well: wall and processor seconds, of itself and its own children, and what it printed."""

    seconds: float
    cpu_seconds: float
    output: bytes


def read_machine() -> Machine:
    """Of this process's machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    kernel, system = platform.release(), f"{platform.system()} {platform.machine()}"
    return Machine(len(os.sched_getaffinity(0)), memory, kernel, platform.python_version(), system)


def read_load() -> float:
    """Processes that wanted a core, averaged over the last minute."""
    return os.getloadavg()[0]


def read_date() -> str:
    """Today, UTC, as YYYY-MM-DD."""
    return time.strftime("%Y-%m-%d", time.gmtime())


def run_timed(
    argv: Sequence[str],
    *,
    folder: Path,
    variables: Mapping[str, str] | None = None,
    umask: int = -1,
    stdin: bytes = b"",
    timeout_s: float = 600,
) -> Ran:
    """Run a command in a folder with more variables and another umask; PipelineError with its last words if it fails.

    ServiceError when it cannot be started or does not end in time.
    """
    command = ["env", *(f"{name}={value}" for name, value in (variables or {}).items()), *argv]
    started, before = time.monotonic(), os.times()
    with tempfile.TemporaryFile() as errors:
        try:
            done = subprocess.run(
                command, cwd=folder, input=stdin, stdout=subprocess.PIPE, stderr=errors, umask=umask, timeout=timeout_s
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ServiceError(f"a command did not run: {error}"[:500], where=" ".join(argv)[:200]) from error
        if done.returncode != 0:
            errors.seek(max(0, errors.seek(0, os.SEEK_END) - _LAST_BYTES))
            last = errors.read().decode("utf-8", "replace").strip()
            raise PipelineError(f"a command ended with {done.returncode}: {last}", where=" ".join(argv)[:200])
    after = os.times()
    cpu_s = after.children_user - before.children_user + after.children_system - before.children_system
    return Ran(time.monotonic() - started, cpu_s, done.stdout)
