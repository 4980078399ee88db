"""A workspace put back to its snapshot in milliseconds, without trusting anything that an agent can forge.

After a restore, a table holds what the kernel says of every path: device, inode, change time and the rest. Only the
kernel writes a change time, on every change of content, name, link, mode, owner or attribute, so at the next restore a
path whose row is unchanged is untouched, and every other one is put back, as a new inode when it is a file.
Two guards make that sound (docs/adr/0009): a probe shows that this file system keeps change times for all kinds of
write, and no command starts within the clock tick of the table. Without a trusted table all content is compared.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Mapping

from arena.agent import Agent
from arena.changetimes import keeps_change_times
from arena.remove import clear_attributes, names_in, remove, remove_children
from arena.snapshot import ROOT, Entry, Snapshot

Row = tuple[int, ...]
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_COMPARE_BYTES = 1 << 20
_LONGEST_TICK_S = 0.05
_MAX_NOTED = 10_000


class Workspace:
    """The directory `path`, its snapshot, and the table of the last restore."""

    def __init__(self, path: str, snapshot: Snapshot, agent: Agent) -> None:
        self.path, self.snapshot, self._agent = path, snapshot, agent
        self._table: dict[str, Row] = {}
        self._keeps_change_times: bool | None = None
        self.restored: tuple[str, ...] = ()

    def restore(self) -> None:
        """Make it equal to the snapshot. No process of the agent may be alive.

        `restored` then names what was put back or removed, up to a limit.
        """
        if self._keeps_change_times is None:
            self._keeps_change_times = keeps_change_times(self.path)
        known = self._table if self._keeps_change_times else {}
        self._table = {}
        directory_fd = os.open(self.path, _DIRECTORY)
        try:
            walk = self._walk(directory_fd, known)
        finally:
            os.close(directory_fd)
        self._table, self.restored = walk.table, tuple(walk.restored)

    def _walk(self, directory_fd: int, known: Mapping[str, Row]) -> _Restore:
        try:
            walk = _Restore(self.snapshot, self._agent, known)
            walk.directory(directory_fd, ROOT)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            # What fills the disk lies where the walk has not been. The snapshot alone has room.
            remove_children(directory_fd)
            walk = _Restore(self.snapshot, self._agent, {})
            walk.directory(directory_fd, ROOT)
        return walk

    def restore_below(self, path: str) -> None:
        """Restore one path of the snapshot and all below it, or remove it when the snapshot lacks it.

        The table stays as it was, so the next `restore` puts all of it right.
        """
        parent, _, name = path.rpartition("/")
        try:
            directory_fd = self.open_directory(parent)
        except (FileNotFoundError, NotADirectoryError):
            # The agent took a parent away: what is to be restored lies nowhere that anything would look.
            return
        try:
            if path in self.snapshot.entries:
                known = self._table if self._keeps_change_times else {}
                _Restore(self.snapshot, self._agent, known).child(directory_fd, name, path)
            else:
                remove(name, directory_fd)
        finally:
            os.close(directory_fd)

    def open_directory(self, path: str) -> int:
        """A descriptor of a directory of the workspace, opened step by step so that no link is followed."""
        directory_fd = os.open(self.path, _DIRECTORY)
        for name in path.split("/") if path else ():
            try:
                child_fd = os.open(name, _DIRECTORY, dir_fd=directory_fd)
            finally:
                os.close(directory_fd)
            directory_fd = child_fd
        return directory_fd

    def settle(self) -> None:
        """Wait until the clock tick of the newest row is over; call it before a command may change anything."""
        newest_ns = max((row[_CTIME] for row in self._table.values()), default=0)
        deadline = time.monotonic() + _LONGEST_TICK_S
        while time.clock_gettime_ns(_COARSE_CLOCK) <= newest_ns:
            if time.monotonic() > deadline:
                # The clock was set back: no change time tells anything now.
                self._table = {}
                return
            time.sleep(0.0005)


class _Restore:
    """One walk over the snapshot's directories, which are never deeper than the image made them."""

    def __init__(self, snapshot: Snapshot, agent: Agent, known: Mapping[str, Row]) -> None:
        self._snapshot, self._agent, self._known = snapshot, agent, known
        self.table: dict[str, Row] = {}
        self.restored: list[str] = []

    def directory(self, directory_fd: int, path: str) -> None:
        """Restore an open directory and all below it, then note its row."""
        entry, names = self._snapshot.entries[path], self._snapshot.names[path]
        before = os.fstat(directory_fd)
        known = self._known.get(path)
        if not _is_unchanged(known, row_of(before)):
            self._own(directory_fd, entry)
            for name in names_in(directory_fd):
                if name not in names:
                    remove(name, directory_fd)
                    self._note(_join(path, name))
        folders = []
        for name in sorted(names):
            child = _join(path, name)
            if self._snapshot.entries[child].kind == "dir":
                self._make_directory(directory_fd, name, child)
                folders.append((name, child))
            else:
                self.child(directory_fd, name, child)
        # Before what lies below: the later a change, the longer `settle` waits.
        self.table[path] = self._timed(directory_fd, known, None if path == ROOT else entry.mtime_ns)
        for name, child in folders:
            self._enter(directory_fd, name, child)

    def child(self, directory_fd: int, name: str, path: str) -> None:
        """Restore one entry of an open directory, and all below it."""
        entry = self._snapshot.entries[path]
        if entry.kind == "dir":
            self._make_directory(directory_fd, name, path)
            self._enter(directory_fd, name, path)
            return
        state = _state(name, directory_fd)
        if state is not None and (known := self._known.get(path)) is not None and known == row_of(state):
            # Nearly all of them: not even read.
            self.table[path] = known
        elif state is not None and self._is_same(directory_fd, name, path, entry, state):
            self.table[path] = self._unread(directory_fd, name, path, state)
        else:
            self._replace(directory_fd, name, path, entry, state)

    def _timed(self, directory_fd: int, known: Row | None, mtime_ns: int | None) -> Row:
        """The row of a directory with the times that it had; the snapshot does not know when the top one changed."""
        row = row_of(os.fstat(directory_fd))
        _, mtime_known_ns, atime_ns = (known or row)[_CTIME:]
        wanted = (atime_ns, mtime_known_ns if mtime_ns is None else mtime_ns)
        if (row[_ATIME], row[_MTIME]) == wanted:
            return row
        os.utime(directory_fd, ns=wanted)
        return row_of(os.fstat(directory_fd))

    def _unread(self, directory_fd: int, name: str, path: str, state: os.stat_result) -> Row:
        """The row of an untouched path, whose time of access does not tell who read it."""
        known, row = self._known.get(path), row_of(state)
        if known is None or known[_ATIME] == row[_ATIME]:
            return row
        os.utime(name, ns=(known[_ATIME], state.st_mtime_ns), dir_fd=directory_fd, follow_symlinks=False)
        return row_of(os.stat(name, dir_fd=directory_fd, follow_symlinks=False))

    def _make_directory(self, parent_fd: int, name: str, path: str) -> None:
        """A directory is there, whatever it holds."""
        state = _state(name, parent_fd)
        if state is None or not stat.S_ISDIR(state.st_mode):
            if state is not None:
                remove(name, parent_fd)
            os.mkdir(name, 0o700, dir_fd=parent_fd)
            self._note(path)

    def _enter(self, parent_fd: int, name: str, path: str) -> None:
        directory_fd = os.open(name, _DIRECTORY, dir_fd=parent_fd)
        try:
            self.directory(directory_fd, path)
        finally:
            os.close(directory_fd)

    def _is_same(self, directory_fd: int, name: str, path: str, entry: Entry, state: os.stat_result) -> bool:
        known = self._known.get(path)
        if known is not None:
            return _is_unchanged(known, row_of(state))
        if not self._looks_same(entry, state):
            return False
        if entry.kind == "symlink":
            return os.readlink(name, dir_fd=directory_fd) == entry.target
        return self._has_same_content(directory_fd, name, entry)

    def _looks_same(self, entry: Entry, state: os.stat_result) -> bool:
        kind_is_same = stat.S_ISLNK(state.st_mode) if entry.kind == "symlink" else stat.S_ISREG(state.st_mode)
        owner_is_same = (state.st_uid, state.st_gid, state.st_nlink) == (self._agent.uid, self._agent.gid, 1)
        if entry.kind == "symlink":
            return kind_is_same and owner_is_same
        shape = (stat.S_IMODE(state.st_mode), state.st_size, state.st_mtime_ns)
        return kind_is_same and owner_is_same and shape == (entry.mode, entry.size, entry.mtime_ns)

    def _has_same_content(self, directory_fd: int, name: str, entry: Entry) -> bool:
        file_fd = os.open(name, _READ, dir_fd=directory_fd)
        try:
            if os.listxattr(file_fd):
                return False
            done = 0
            while done < entry.size:
                ours = os.pread(self._snapshot.fd, min(_COMPARE_BYTES, entry.size - done), entry.offset + done)
                if not ours or os.pread(file_fd, len(ours), done) != ours:
                    return False
                done += len(ours)
            return True
        finally:
            os.close(file_fd)

    def _replace(self, directory_fd: int, name: str, path: str, entry: Entry, state: os.stat_result | None) -> None:
        """A new inode: the old one may have other names, open writes or attributes."""
        if state is not None:
            remove(name, directory_fd)
        if entry.kind == "symlink":
            os.symlink(entry.target, name, dir_fd=directory_fd)
            os.chown(name, self._agent.uid, self._agent.gid, dir_fd=directory_fd, follow_symlinks=False)
            os.utime(name, ns=(entry.mtime_ns, entry.mtime_ns), dir_fd=directory_fd, follow_symlinks=False)
            self.table[path] = row_of(os.stat(name, dir_fd=directory_fd, follow_symlinks=False))
        else:
            self.table[path] = self._write(directory_fd, name, entry)
        self._note(path)

    def _write(self, directory_fd: int, name: str, entry: Entry) -> Row:
        file_fd = os.open(name, _CREATE, 0o600, dir_fd=directory_fd)
        try:
            done = 0
            while done < entry.size:
                sent = os.sendfile(file_fd, self._snapshot.fd, entry.offset + done, entry.size - done)
                if sent == 0:
                    raise OSError("the snapshot ended early")
                done += sent
            os.fchown(file_fd, self._agent.uid, self._agent.gid)
            os.fchmod(file_fd, entry.mode)
            os.utime(file_fd, ns=(entry.mtime_ns, entry.mtime_ns))
            return row_of(os.fstat(file_fd))
        finally:
            os.close(file_fd)

    def _note(self, path: str) -> None:
        if len(self.restored) < _MAX_NOTED:
            self.restored.append(path)

    def _own(self, directory_fd: int, entry: Entry) -> None:
        # Attributes first: a default access list would be inherited by what is made below.
        clear_attributes(directory_fd)
        os.fchown(directory_fd, self._agent.uid, self._agent.gid)
        os.fchmod(directory_fd, entry.mode)


_CTIME, _MTIME, _ATIME = 7, 8, 9
_COARSE_CLOCK = 5


def row_of(state: os.stat_result) -> Row:
    """What the kernel says of an inode. Only the last one, the time of access, may differ while nothing changed."""
    return (
        state.st_dev, state.st_ino, state.st_mode, state.st_uid, state.st_gid, state.st_nlink, state.st_size,
        state.st_ctime_ns, state.st_mtime_ns, state.st_atime_ns,
    )  # fmt: skip


def _is_unchanged(known: Row | None, row: Row) -> bool:
    return known == row or (known is not None and known[:_ATIME] == row[:_ATIME])


def _state(name: str, directory_fd: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=directory_fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name
