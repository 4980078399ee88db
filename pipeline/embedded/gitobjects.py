"""Git objects, a pack, its index and the staging index as bytes that depend on content alone.

Formats: gitformat-pack(5), gitformat-index(5). Git's own pack differs from version to version and with the machine's
zlib, so a layer that holds it would too; here libdeflate compresses and every object is whole.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import deflate

LEVEL = 9
_PACK_TYPES = {"commit": 1, "tree": 2, "blob": 3}


@dataclass(frozen=True)
class GitObject:
    """A commit, tree or blob."""

    kind: str
    data: bytes

    @property
    def raw(self) -> bytes:
        """Header and content: what is hashed, and what a loose file holds compressed."""
        return f"{self.kind} {len(self.data)}".encode() + b"\0" + self.data

    @property
    def loose(self) -> bytes:
        """The bytes of its loose file."""
        return bytes(deflate.zlib_compress(self.raw, LEVEL))


@dataclass(frozen=True)
class TreeFile:
    """A file of a tree by its blob id (40 hex)."""

    blob: str
    executable: bool


class ObjectSet:
    """Objects by id; adding one twice keeps one."""

    def __init__(self) -> None:
        self.by_id: dict[str, GitObject] = {}

    def add(self, kind: str, data: bytes) -> str:
        """Add an object; returns its id."""
        item = GitObject(kind, data)
        identity = hashlib.sha1(item.raw, usedforsecurity=False).hexdigest()
        self.by_id.setdefault(identity, item)
        return identity

    def add_tree(self, files: Mapping[str, TreeFile]) -> str:
        """Add the trees of a path -> file mapping; returns the id of the root tree."""
        folders: dict[str, dict[str, TreeFile]] = {}
        rows: list[tuple[bytes, bytes]] = []
        for path, file in files.items():
            name, slash, rest = path.partition("/")
            if slash:
                folders.setdefault(name, {})[rest] = file
            else:
                rows.append(_row("100755" if file.executable else "100644", name, file.blob, name))
        for name, inner in folders.items():
            # Git sorts a folder as if its name ended in a slash.
            rows.append(_row("40000", name, self.add_tree(inner), name + "/"))
        return self.add("tree", b"".join(row for _, row in sorted(rows)))


def _row(mode: str, name: str, identity: str, sort_name: str) -> tuple[bytes, bytes]:
    return sort_name.encode(), f"{mode} {name}".encode() + b"\0" + bytes.fromhex(identity)


@dataclass(frozen=True)
class Pack:
    """A pack, its index, and the name that both carry."""

    name: str
    pack: bytes
    index: bytes


def make_pack(objects: Mapping[str, GitObject]) -> Pack:
    """All objects, whole and in the order of their ids, as a version 2 pack with a version 2 index."""
    ids = sorted(objects)
    parts, offsets, checksums = [b"PACK" + struct.pack(">II", 2, len(ids))], [], []
    position = len(parts[0])
    for identity in ids:
        item = objects[identity]
        part = _pack_header(_PACK_TYPES[item.kind], len(item.data)) + bytes(deflate.zlib_compress(item.data, LEVEL))
        offsets.append(position)
        checksums.append(zlib.crc32(part))
        parts.append(part)
        position += len(part)
    body = b"".join(parts)
    trailer = hashlib.sha1(body, usedforsecurity=False).digest()
    return Pack(trailer.hex(), body + trailer, _pack_index(ids, offsets, checksums, trailer))


def _pack_header(kind: int, size: int) -> bytes:
    first, size = (kind << 4) | (size & 15), size >> 4
    out = bytearray()
    while size:
        out.append(first | 0x80)
        first, size = size & 0x7F, size >> 7
    out.append(first)
    return bytes(out)


def _pack_index(ids: Sequence[str], offsets: Sequence[int], checksums: Sequence[int], trailer: bytes) -> bytes:
    names = [bytes.fromhex(identity) for identity in ids]
    counts = [sum(1 for name in names if name[0] <= first) for first in range(256)]
    body = b"\xfftOc" + struct.pack(">I", 2) + struct.pack(">256I", *counts) + b"".join(names)
    body += b"".join(struct.pack(">I", value) for value in checksums)
    # Offsets of 2 GiB and more would need the extended table; limits on sdists keep a pack far below.
    body += b"".join(struct.pack(">I", value) for value in offsets) + trailer
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def make_index(files: Mapping[str, TreeFile], sizes: Mapping[str, int], owner: int, time_s: int) -> bytes:
    """A version 2 staging index of files at stage 0; `sizes` are the work tree's, in bytes, by path."""
    body = b"DIRC" + struct.pack(">II", 2, len(files))
    for path in sorted(files, key=str.encode):
        file, name = files[path], path.encode()
        mode = 0o100755 if file.executable else 0o100644
        stat = struct.pack(">10I", time_s, 0, time_s, 0, 0, 0, mode, owner, owner, sizes[path])
        entry = stat + bytes.fromhex(file.blob) + struct.pack(">H", min(len(name), 0xFFF)) + name
        body += entry + b"\0" * (8 - len(entry) % 8)
    return body + hashlib.sha1(body, usedforsecurity=False).digest()
