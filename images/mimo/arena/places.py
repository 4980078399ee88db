"""Every place outside the workspace that the agent's UID can write, found by looking at the whole root, not by a list.

Directories that the agent owns or may write are places: a reset empties them. A single file that it may write is sealed
once, at start: it becomes root's and read-only for everybody else.
"""

# Descriptors and exact names, which pathlib does not have.
# ruff: noqa: PTH116
from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from arena.agent import Agent

# Kernel interfaces whose entries are no storage.
_NOT_STORAGE = frozenset({"proc", "sysfs", "cgroup", "cgroup2", "devpts", "securityfs", "debugfs", "tracefs", "bpf"})


@dataclass(frozen=True)
class Place:
    """A directory that the agent can write, its mode and its time of change when the server started."""

    path: str
    mode: int
    mtime_ns: int


@dataclass(frozen=True)
class Writable:
    """Directories to empty at a reset, and absolute paths of single files to seal at start."""

    places: tuple[Place, ...]
    loose_files: tuple[str, ...]


def find_writable(root: str, agent: Agent, skip: frozenset[str] = frozenset()) -> Writable:
    """Look at every directory and file under `root`, other mounts included; `skip` has absolute paths to leave out."""
    left_out = skip | _kernel_mounts()
    places, loose_files = [], []
    for path, state, inside in _walk(root, left_out, agent):
        # What is in a place goes when the place is emptied, unless it is root's.
        if inside and state.st_uid != 0:
            continue
        if stat.S_ISDIR(state.st_mode):
            places.append(Place(path, stat.S_IMODE(state.st_mode), state.st_mtime_ns))
        elif stat.S_ISREG(state.st_mode):
            loose_files.append(path)
    return Writable(tuple(sorted(places, key=lambda place: place.path)), tuple(sorted(loose_files)))


def seal(path: str) -> None:
    """Make a file root's, and read-only for everybody else."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.fchown(descriptor, 0, 0)
        os.fchmod(descriptor, stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o755)
    finally:
        os.close(descriptor)


def may_write(state: os.stat_result, agent: Agent) -> bool:
    """Whether the agent owns it (and so may change its mode) or its mode lets the agent write."""
    if state.st_uid == agent.uid:
        return True
    if state.st_gid == agent.gid:
        return bool(state.st_mode & stat.S_IWGRP)
    return bool(state.st_mode & stat.S_IWOTH)


def _walk(root: str, left_out: frozenset[str], agent: Agent) -> Iterator[tuple[str, os.stat_result, bool]]:
    """Writable paths with their state, and whether they are in a place that is emptied anyway."""
    root_state = os.stat(root, follow_symlinks=False)
    waiting = [(root, may_write(root_state, agent))]
    if waiting[0][1]:
        yield root, root_state, False
    while waiting:
        directory, inside = waiting.pop()
        for entry in _entries(directory):
            if entry.path in left_out or entry.is_symlink():
                continue
            state = entry.stat(follow_symlinks=False)
            writable = may_write(state, agent)
            if writable:
                yield entry.path, state, inside
            if stat.S_ISDIR(state.st_mode):
                waiting.append((entry.path, writable or inside))


def _entries(directory: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            yield from entries
    except (FileNotFoundError, PermissionError):
        return


def _kernel_mounts() -> frozenset[str]:
    rows = (line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines())
    return frozenset(row[4] for row in rows if row[row.index("-") + 1] in _NOT_STORAGE)
