"""A probe: does this file system move an inode's change time for every kind of change, mapped writes included?

On tmpfs it does not for a write through a shared mapping. A workspace on such a file system is compared by content.
"""

# Descriptors and exact names, which pathlib does not have.
# ruff: noqa: PTH104, PTH108, PTH118
from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable

_LONGEST_TICK_S = 0.05
_COARSE_CLOCK = 5
_SIZE = 4096


def keeps_change_times(directory: str) -> bool:
    """Try a plain write, a mapped write, a forged time, a mode, a link and a rename on a file of our own."""
    path = os.path.join(directory, f".probe-{os.urandom(12).hex()}")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(descriptor, b"a" * _SIZE, 0)
        changes: tuple[Callable[[], object], ...] = (
            lambda: os.pwrite(descriptor, b"b", 0),
            lambda: _write_mapped(descriptor),
            lambda: os.utime(descriptor, ns=(1, 1)),
            lambda: os.fchmod(descriptor, 0o640),
            lambda: _link(path),
            lambda: _rename(path),
        )
        return all(_moves(descriptor, change) for change in changes)
    finally:
        os.close(descriptor)
        os.unlink(path)


def _moves(descriptor: int, change: Callable[[], object]) -> bool:
    before_ns = os.fstat(descriptor).st_ctime_ns
    deadline = time.monotonic() + _LONGEST_TICK_S
    while time.clock_gettime_ns(_COARSE_CLOCK) <= before_ns and time.monotonic() < deadline:
        time.sleep(0.0005)
    change()
    return os.fstat(descriptor).st_ctime_ns > before_ns


def _write_mapped(descriptor: int) -> None:
    with mmap.mmap(descriptor, _SIZE) as mapping:
        mapping[1:2] = b"c"


def _link(path: str) -> None:
    os.link(path, path + "-link")
    os.unlink(path + "-link")


def _rename(path: str) -> None:
    os.rename(path, path + "-name")
    os.rename(path + "-name", path)
