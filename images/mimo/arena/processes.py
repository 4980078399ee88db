"""Processes of the agent: hardening of the server, reaping, and an end to every process that has the agent's UID.

`kill(-1)` signals all processes that the caller may signal while the kernel holds its task list lock, and a process
with a pending SIGKILL cannot fork: no race with a fork bomb, a double fork or a stopped process. It is called by a
thread of the server that takes the agent's UID for that one call, so it needs no new process (a full PID limit cannot
prevent it) and never hits processes of root, such as an operator's `docker exec`.
"""

# Descriptors and exact names, which pathlib does not have.
# ruff: noqa: PTH208
from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import threading
import time
from pathlib import Path

from arena.failures import InfrastructureError
from arena.identity import as_user

MAX_PROCESSES = 4096
MAX_FILE_BYTES = 10 << 30

_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38

_libc = ctypes.CDLL(None, use_errno=True)


def harden_server() -> None:
    """Limits and flags that every command inherits, and a memory that the agent can never read."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_DUMPABLE, 0)
    os.umask(0o022)
    _limit(resource.RLIMIT_CORE, 0)
    # The count is of all processes of this UID on the machine, other containers included: only a last resort.
    _limit(resource.RLIMIT_NPROC, MAX_PROCESSES)
    _limit(resource.RLIMIT_FSIZE, MAX_FILE_BYTES)


class Reaper:
    """Collects every child of the server; keeps the status of the awaited ones."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._awaited: dict[int, int | None] = {}

    def expect(self, pid: int) -> None:
        """Keep this child's status. Call it with `lock` held since before the child was made."""
        self._awaited[pid] = None

    def reap(self) -> None:
        """Collect all children that have ended."""
        with self.lock, contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid in self._awaited:
                    self._awaited[pid] = status

    def take(self, pid: int) -> int:
        """The exit code of an awaited child that has ended: as a shell gives it, 128 + n for signal n."""
        self.reap()
        with self.lock:
            status = self._awaited.pop(pid, None)
        if status is None:
            raise InfrastructureError("a command's exit status was lost")
        code = os.waitstatus_to_exitcode(status)
        return 128 - code if code < 0 else code


def kill_all(uid: int, reaper: Reaper, timeout_s: float = 30) -> None:
    """Kill and collect every process of `uid`; InfrastructureError if one is still there after `timeout_s`."""
    deadline, pause_s = time.monotonic() + timeout_s, 0.0002
    # Zombies can be signalled, too: without them there is mostly nobody, and no need to look.
    reaper.reap()
    while _signal_all(uid):
        reaper.reap()
        if not living(uid):
            return
        if time.monotonic() > deadline:
            raise InfrastructureError(f"processes of UID {uid} survive: {living(uid)[:10]}")
        time.sleep(pause_s)
        pause_s = min(pause_s * 2, 0.02)


def living(uid: int) -> list[int]:
    """PIDs of processes, zombies included, whose real, effective, saved or file system UID is `uid`."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and uid in _uids(name)]


def _signal_all(uid: int) -> bool:
    """SIGKILL to all processes of uid; False when there is certainly none."""
    with as_user(uid):
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            return False
    return True


def _uids(pid: str) -> frozenset[int]:
    # The owner of /proc/PID lies for a process that is not dumpable; the status file does not.
    try:
        status = Path("/proc", pid, "status").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return frozenset()
    line = status.partition(b"\nUid:")[2].partition(b"\n")[0]
    return frozenset(int(field) for field in line.split())


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise InfrastructureError(f"prctl({option}) failed: {os.strerror(ctypes.get_errno())}")


def _limit(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    wanted = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (wanted, wanted))
