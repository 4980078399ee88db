"""What a running command leaves of the disk and of the container's memory, looked at while it runs.

When the memory is full the kernel may end the server instead of the agent's processes: they can make themselves as
unattractive as the server, and their memory need not be in any process (files in memory, full sockets). So a command
ends before that.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

FLOOR_BYTES = 256 << 20
_FLOOR_INODES = 10_000
# Control groups of version 2 and 1: limit and use; `memory.stat` says how much of it are files that can be dropped.
_GROUPS = (
    ("memory.max", "memory.current", "memory.stat"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
)
_DROPPED = (b"inactive_file", b"active_file", b"slab_reclaimable")
_UNLIMITED_BYTES = 1 << 60


@dataclass(frozen=True)
class _Free:
    disk_bytes: int
    inodes: int
    memory_bytes: int


class Room:
    """Floors are at most FLOOR_BYTES and 10,000 inodes, and half of what was free when it was first looked at."""

    def __init__(self, path: str, groups: Path = Path("/sys/fs/cgroup")) -> None:
        self._path, self._groups = path, groups
        self._first: _Free | None = None

    def shortage(self) -> str:
        """`disk`, `memory`, or nothing."""
        free = _Free(*_free_on_disk(self._path), free_memory(self._groups))
        first = self._first = self._first or free
        if free.memory_bytes < min(FLOOR_BYTES, first.memory_bytes // 2):
            return "memory"
        is_full = free.disk_bytes < min(FLOOR_BYTES, first.disk_bytes // 2)
        return "disk" if is_full or free.inodes < min(_FLOOR_INODES, first.inodes // 2) else ""


def free_memory(groups: Path) -> int:
    """Bytes up to the limit of the container's control group, files that can be dropped counted as free."""
    for limit_name, use_name, statistics_name in _GROUPS:
        try:
            limit, use = (groups / limit_name).read_text().strip(), int((groups / use_name).read_text())
            if not limit.isdecimal() or int(limit) >= _UNLIMITED_BYTES:
                break
            free = int(limit) - use
            # The statistics cost more than all the rest.
            return free if free > 2 * FLOOR_BYTES else free + _droppable(groups / statistics_name)
        except FileNotFoundError:
            continue
    return _UNLIMITED_BYTES


def _droppable(statistics: Path) -> int:
    rows = (line.split() for line in statistics.read_bytes().splitlines())
    return sum(int(row[1]) for row in rows if row[0] in _DROPPED)


def _free_on_disk(path: str) -> tuple[int, int]:
    state = os.statvfs(path)
    # Some file systems have no limit of inodes, and say 0.
    return state.f_bavail * state.f_frsize, state.f_favail if state.f_files else _UNLIMITED_BYTES
