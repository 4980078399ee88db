"""Removal of whatever an agent left, however deep, named or linked, without following a link and with few descriptors.

A tree deeper than DEPTH levels is unrolled: the directory at that level moves up beside the one that is being removed.
Only directories that came with the image cannot be moved (overlay file systems refuse), and those are never deep.
"""

from __future__ import annotations

import array
import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator

DEPTH = 32
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_AGENT_ATTRIBUTES = ("user.", "system.posix_acl_")
# ioctl numbers and flags of linux/fs.h: secrm, unrm, compr, sync, nodump, noatime; nocomp; notail; dirsync, topdir;
# eofblocks, nocow; dax; projinherit, with which a file system may refuse to move what lies below.
_GET_FLAGS = 0x80086601
_SET_FLAGS = 0x40086602
_AGENT_FLAGS = 0xCF | 0x400 | 0x8000 | 0x30000 | 0xC00000 | 0x2000000 | 0x20000000


def names_in(directory_fd: int) -> Iterator[str]:
    """The names in a directory, read as they are asked for: there may be millions, and each may be removed at once."""
    with os.scandir(directory_fd) as entries:
        for entry in entries:
            yield entry.name


def remove(name: str, parent_fd: int) -> None:
    """Remove `name` of the directory `parent_fd`, of whatever kind; nothing happens when it is not there."""
    pending = [name]
    while pending:
        current = pending.pop()
        with contextlib.suppress(FileNotFoundError):
            _remove_one(current, parent_fd, parent_fd, DEPTH, pending)


def remove_children(directory_fd: int, keep: frozenset[str] = frozenset()) -> None:
    """Remove everything in a directory except names in `keep`."""
    for name in names_in(directory_fd):
        if name not in keep:
            remove(name, directory_fd)


def clear_attributes(descriptor: int) -> None:
    """Remove all extended attributes that an agent may set, access lists included, and the inode's flags."""
    with contextlib.suppress(OSError):
        for attribute in os.listxattr(descriptor):
            if attribute.startswith(_AGENT_ATTRIBUTES):
                os.removexattr(descriptor, attribute)
    with contextlib.suppress(OSError):
        flags = array.array("l", [0])
        fcntl.ioctl(descriptor, _GET_FLAGS, flags)
        if flags[0] & _AGENT_FLAGS:
            flags[0] &= ~_AGENT_FLAGS
            fcntl.ioctl(descriptor, _SET_FLAGS, flags)


def _remove_one(name: str, parent_fd: int, top_fd: int, depth: int, pending: list[str]) -> None:
    if not stat.S_ISDIR(os.stat(name, dir_fd=parent_fd, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=parent_fd)
        return
    directory_fd = os.open(name, _DIRECTORY, dir_fd=parent_fd)
    try:
        for child in names_in(directory_fd):
            if depth > 0 or not _moved_up(child, directory_fd, top_fd, pending):
                _remove_one(child, directory_fd, top_fd, depth - 1, pending)
    finally:
        os.close(directory_fd)
    os.rmdir(name, dir_fd=parent_fd)


def _moved_up(name: str, directory_fd: int, top_fd: int, pending: list[str]) -> bool:
    """Move a directory to the top, to be removed later; False when it is no directory or cannot be moved."""
    if not stat.S_ISDIR(os.stat(name, dir_fd=directory_fd, follow_symlinks=False).st_mode):
        return False
    target = f".removed-{os.urandom(12).hex()}"
    try:
        os.rename(name, target, src_dir_fd=directory_fd, dst_dir_fd=top_fd)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return False
    pending.append(target)
    return True
