"""Background processes of the local target, found by what they run, never by a remembered number.

A pid file can be stale, missing (its writer was killed) or name a process that took the number over. The kernel's list
of command lines cannot: each service is started with an argument that holds the path of its own state, and whatever
runs with that argument is ours. A zombie has no command line, so it counts as gone.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import ServiceError
from pipeline.files import storage_errors

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_POLL_S = 0.02
_LOG_TAIL_BYTES = 2000


@dataclass(frozen=True)
class Running:
    """A process as /proc shows it. `started` (clock ticks since boot) tells it from a later one of the same number."""

    pid: int
    started: int
    argv: tuple[str, ...]


def find_processes(marker: Sequence[str]) -> tuple[Running, ...]:
    """Processes whose arguments contain `marker` as consecutive whole arguments, this process excepted."""
    wanted = tuple(marker)
    return tuple(running for running in _all_processes() if _contains(running.argv, wanted))


def _all_processes() -> tuple[Running, ...]:
    observed = (observe_process(int(path.name)) for path in Path("/proc").iterdir() if path.name.isdecimal())
    return tuple(running for running in observed if running and running.pid != os.getpid())


def observe_process(pid: int) -> Running | None:
    """The process of that number, or None when there is none or only a zombie."""
    try:
        # proc(5): the name in parentheses may hold spaces, so fields are counted from its end: state is 3, start is 22.
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else Running(pid, int(fields[19]), read_argv(pid))


def read_argv(pid: int) -> tuple[str, ...]:
    """The arguments of a process; empty for one that is gone, a zombie or a kernel thread."""
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ()
    return tuple(os.fsdecode(part) for part in raw.split(b"\0")[:-1])


def _contains(argv: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return any(argv[at : at + len(wanted)] == wanted for at in range(len(argv) - len(wanted) + 1))


def find_program(name: str, package: str) -> str:
    """The absolute path of a program; ServiceError names the Debian package that has it."""
    path = shutil.which(name, path=SEARCH_PATH)
    if path is None:
        raise ServiceError(
            f"{name} is not installed", where=SEARCH_PATH, remedy=f"run ./noxw, or: apt-get install {package}"
        )
    return path


def spawn(argv: Sequence[str], log_path: Path, *, folder: Path, environment: Mapping[str, str] | None = None) -> None:
    """Start argv in a session of its own, adopted by init, output appended to the log; Ctrl-C does not reach it.

    The environment is minimal unless given, so that variables of a person's shell do not configure a service.
    """
    minimal = {"PATH": SEARCH_PATH, "HOME": str(folder), "LANG": "C.UTF-8"}
    with storage_errors(log_path), log_path.open("ab") as log:
        subprocess.run(
            [find_program("setsid", "util-linux"), "--fork", *argv],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            env=minimal if environment is None else dict(environment),
            check=True,
        )


def terminate(processes: Sequence[Running], grace_s: float = 10) -> None:
    """SIGTERM, then SIGKILL to those that outlive the grace; returns when all are gone. ServiceError if one stays."""
    # continued first: a stopped process acts on no other signal, and may then give it to the wrong thread
    _signal(processes, signal.SIGCONT)
    _signal(processes, signal.SIGTERM)
    if not wait_until(lambda: not _still(processes), grace_s):
        _signal(processes, signal.SIGKILL)
        if not wait_until(lambda: not _still(processes), 10):
            stuck = ", ".join(str(running.pid) for running in _still(processes))
            raise ServiceError(
                "a process does not die", where=f"process {stuck}", remedy="see its state in /proc, then retry"
            )


def _still(processes: Sequence[Running]) -> list[Running]:
    now = ((running, observe_process(running.pid)) for running in processes)
    return [running for running, seen in now if seen is not None and seen.started == running.started]


def _signal(processes: Sequence[Running], number: signal.Signals) -> None:
    for running in _still(processes):
        try:
            os.kill(running.pid, number)
        except ProcessLookupError:
            continue
        except PermissionError as error:
            raise ServiceError(
                "a service was started by another user",
                where=f"process {running.pid} ({' '.join(running.argv)[:120]})",
                remedy="run the same command as that user or as root",
            ) from error


def wait_until(condition: Callable[[], object], timeout_s: float) -> bool:
    """Poll until the condition holds; False when the time is over."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def read_log_tail(path: Path) -> str:
    """The last lines of a service's log, for an error message; empty when there is none."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - _LOG_TAIL_BYTES))
            return "\n".join(log.read(_LOG_TAIL_BYTES).decode("utf-8", "replace").splitlines()[-5:])
    except OSError:
        return ""
