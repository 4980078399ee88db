"""The state that a reset restores: an index of an uncompressed tar, whose content is read from its offsets."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from arena.failures import InfrastructureError

Kind = Literal["file", "dir", "symlink"]
ROOT = ""


@dataclass(frozen=True)
class Entry:
    """One path: permission bits, size and offset in the tar in bytes, and a symbolic link's target."""

    kind: Kind
    mode: int
    mtime_ns: int
    size: int = 0
    offset: int = 0
    target: str = ""


class Snapshot:
    """Entries by relative path (`""` is the top), the names in each directory, and the open tar."""

    def __init__(self, tar_fd: int, entries: Mapping[str, Entry]) -> None:
        self.fd, self.entries = tar_fd, entries
        names: dict[str, set[str]] = {path: set() for path, entry in entries.items() if entry.kind == "dir"}
        for path in entries:
            if path != ROOT:
                parent, _, name = path.rpartition("/")
                names[parent].add(name)
        self.names = {path: frozenset(children) for path, children in names.items()}

    def read(self, path: str) -> bytes:
        """The content of a file of the snapshot."""
        entry = self.entries[path]
        return os.pread(self.fd, entry.size, entry.offset)

    def close(self) -> None:
        """Close the tar."""
        os.close(self.fd)


def open_snapshot(tar_path: str) -> Snapshot:
    """Index a tar with files, directories and symbolic links of relative, normal paths; missing parents are 0755."""
    descriptor = os.open(tar_path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    entries: dict[str, Entry] = {ROOT: Entry("dir", 0o755, 0)}
    with open(descriptor, "rb", closefd=False) as file, tarfile.open(fileobj=file, mode="r:") as tar:
        for member in tar:
            path = _normal(member.name)
            _add_parents(entries, path, member.mtime)
            entries[path] = _entry(member)
    return Snapshot(descriptor, entries)


def _entry(member: tarfile.TarInfo) -> Entry:
    mtime_ns = int(member.mtime * 1_000_000_000)
    if member.isdir():
        return Entry("dir", member.mode & 0o7777, mtime_ns)
    if member.issym():
        return Entry("symlink", 0o777, mtime_ns, target=member.linkname)
    if member.isreg():
        return Entry("file", member.mode & 0o7777, mtime_ns, member.size, member.offset_data)
    raise InfrastructureError(f"the snapshot holds {member.name!r}, which is no file, directory or symbolic link")


def _normal(name: str) -> str:
    path = name.rstrip("/")
    if path == ".":
        return ROOT
    path = path.removeprefix("./")
    if path.startswith("/") or {"", ".", ".."} & set(path.split("/")):
        raise InfrastructureError(f"the snapshot holds a path that is not relative and normal: {name!r}")
    return path


def _add_parents(entries: dict[str, Entry], path: str, mtime: float) -> None:
    while "/" in path:
        path = path.rpartition("/")[0]
        entries.setdefault(path, Entry("dir", 0o755, int(mtime * 1_000_000_000)))
