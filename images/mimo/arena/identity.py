"""Taking the agent's identity, in one thread of the server and for a moment.

Meanwhile that thread is no stranger to a process of the agent, which may send it signals, even SIGTERM, and slow
it down. So it is a thread whose signals stay blocked, and for a command one that ends with the command: what was
done to it reaches neither the server nor the next command.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import TypeVar

from arena.failures import InfrastructureError

# linux/amd64 system call numbers; glibc's wrappers would change the ids of all threads.
_SYS_SETGROUPS = 116
_SYS_SETRESUID = 117
_SYS_SETRESGID = 119

_libc = ctypes.CDLL(None, use_errno=True)
_Result = TypeVar("_Result")


def run_apart(function: Callable[[], _Result]) -> _Result:
    """Call it in a thread of its own, whose groups and priority are nobody else's; what it raises is raised."""
    done: Future[_Result] = Future()

    def run() -> None:
        try:
            done.set_result(function())
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            done.set_exception(error)

    thread = threading.Thread(target=run)
    try:
        thread.start()
    except RuntimeError as error:
        raise InfrastructureError(f"could not start a thread: {error}") from error
    thread.join()
    return done.result()


@contextlib.contextmanager
def as_user(uid: int, gid: int | None = None) -> Iterator[None]:
    """Run the block with real and effective UID `uid`, in this thread only; the saved UID stays 0 for the way back.

    With a `gid` the thread gets it too, has no other groups, and keeps that. Signals stay blocked, but in the main one.
    """
    if uid <= 0:
        raise InfrastructureError("refusing to act as root")
    if threading.current_thread() is not threading.main_thread():
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    if gid is not None:
        _call(_SYS_SETGROUPS, 0, 0, 0)
        _call(_SYS_SETRESGID, gid, gid, gid)
    _call(_SYS_SETRESUID, uid, uid, 0)
    try:
        # A kill(-1) with the wrong identity would end the machine: check, do not trust.
        if (os.getuid(), os.geteuid()) != (uid, uid):
            raise InfrastructureError("could not take the agent's UID")
        yield
    finally:
        _call(_SYS_SETRESUID, 0, 0, 0)


def _call(number: int, first: int, second: int, third: int) -> None:
    if _libc.syscall(ctypes.c_long(number), first, second, third) != 0:
        raise InfrastructureError(f"system call {number} failed: {os.strerror(ctypes.get_errno())}")
