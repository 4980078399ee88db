"""The files of a fresh repository, written here rather than by git: pack, pack index, index, refs.

Their bytes depend on the objects and on how the source repository compressed them, never on an installed git or zlib.
Formats: gitformat-pack (version 2, index version 2), gitformat-index (version 2), gitrepository-layout.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import deflate

from pipeline.derive.git_deltas import choose_bases, make_delta
from pipeline.derive.object_store import ObjectStore
from pipeline.errors import HostileInputError
from pipeline.scan.buffer import sha1
from pipeline.scan.graph import paused_collection
from pipeline.scan.objects import GITLINK, ID_BYTES, KINDS, Format, TreeEntry, tree_entries

LEVEL = 9
_OFS_DELTA = 6


@dataclass(frozen=True)
class Pack:
    """A pack and its index, and the hex name that both files carry."""

    name: str
    data: bytes
    index: bytes


@dataclass(frozen=True)
class TreeFile:
    """One path of a commit: a blob (file or symbolic link), or a submodule's commit."""

    path: bytes
    mode: int
    id: bytes


def write_pack(store: ObjectStore, kept: Iterable[bytes], base_commit: bytes) -> Pack:
    """Pack exactly `kept`.

    Compressed data and deltas are taken over as they are where the delta's base is kept as well (first its base, then
    it); other objects are compressed with libdeflate. The order is that of the source packs. A source that has no
    deltas worth the name gets new ones.
    """
    wanted = set(kept)
    whole = sum(store.places[one].base not in wanted for one in wanted)
    writer = _PackWriter(store, wanted, choose_bases(store, base_commit, wanted) if 2 * whole > len(wanted) else {})
    with paused_collection():
        for one in sorted(wanted, key=lambda one: _order(store, one)):
            writer.add(one)
    return writer.close()


def list_tree(store: ObjectStore, tree: bytes, prefix: bytes = b"") -> list[TreeFile]:
    """Every path below a tree, in the order of an index (bytes of the path)."""
    files: list[TreeFile] = []
    waiting: list[tuple[bytes, bytes]] = [(tree, prefix)]
    while waiting:
        one, folder = waiting.pop()
        for entry in tree_entries(store.read(one), store.form):
            _check_name(entry)
            path = folder + entry.name
            if entry.mode in (b"40000", b"040000"):
                waiting.append((entry.id, path + b"/"))
            else:
                files.append(TreeFile(path, int(entry.mode, 8), entry.id))
    return sorted(files, key=lambda file: file.path)


def write_index(files: Iterable[TreeFile], form: Format) -> bytes:
    """An index whose stat data is zero, so git compares contents once and writes its own."""
    rows = bytearray()
    count = 0
    for file in files:
        count += 1
        mode = file.mode if file.mode in (0o120000, int(GITLINK, 8)) else 0o100755 if file.mode & 0o100 else 0o100644
        row = struct.pack(">24xI12x", mode) + file.id + struct.pack(">H", min(len(file.path), 0xFFF)) + file.path
        rows += row + bytes(8 - len(row) % 8)
    body = b"DIRC" + struct.pack(">II", 2, count) + bytes(rows)
    return body + _checksum(form, body)


def write_packed_refs(refs: Mapping[str, bytes], peeled: Mapping[str, bytes]) -> bytes:
    """All refs in one file, sorted, with what annotated tags point to."""
    lines = [b"# pack-refs with: peeled fully-peeled sorted \n"]
    for name in sorted(refs, key=lambda name: name.encode()):
        lines.append(b"%s %s\n" % (refs[name].hex().encode(), name.encode()))
        if name in peeled:
            lines.append(b"^%s\n" % peeled[name].hex().encode())
    return b"".join(lines)


def write_config(form: Format) -> bytes:
    """The smallest config that git accepts."""
    version = 1 if form == "sha256" else 0
    text = f"[core]\n\trepositoryformatversion = {version}\n\tfilemode = true\n\tbare = false\n"
    if form == "sha256":
        text += "[extensions]\n\tobjectformat = sha256\n"
    return text.encode()


class _PackWriter:
    def __init__(self, store: ObjectStore, wanted: set[bytes], bases: dict[bytes, bytes]) -> None:
        self._store, self._wanted, self._bases = store, wanted, bases
        self._data = bytearray(b"PACK" + struct.pack(">II", 2, len(wanted)))
        self._offsets: dict[bytes, int] = {}
        self._crcs: dict[bytes, int] = {}

    def add(self, one: bytes) -> None:
        """Append an object after the chain of bases that it needs."""
        chain = []
        current: bytes | None = one
        while current is not None and current not in self._offsets:
            chain.append(current)
            current = self._kept_base(current) or self._bases.get(current)
            if current in chain:  # its newer version was made from it already
                break
        for step in reversed(chain):
            self._append(step)

    def close(self) -> Pack:
        """The whole pack and its index."""
        form = self._store.form
        trailer = _checksum(form, bytes(self._data))
        self._data += trailer
        ids = sorted(self._offsets)
        index = bytearray(b"\xfftOc" + struct.pack(">I", 2) + _fanout(ids) + b"".join(ids))
        index += b"".join(struct.pack(">I", self._crcs[one]) for one in ids)
        index += _offsets([self._offsets[one] for one in ids]) + trailer
        return Pack(trailer.hex(), bytes(self._data), bytes(index) + _checksum(form, bytes(index)))

    def _kept_base(self, one: bytes) -> bytes | None:
        base = self._store.places[one].base
        return base if base in self._wanted else None

    def _append(self, one: bytes) -> None:
        place, start = self._store.places[one], len(self._data)
        base = self._kept_base(one)
        if base is None and self._append_delta(one, start):
            return
        if place.entry is None or (place.base is not None and base is None):
            content = self._store.read(one)
            kind = KINDS.index(self._store.graph.objects[one].kind) + 1
            raw = _header(kind, len(content)) + bytes(deflate.zlib_compress(content, LEVEL))
        else:
            body = self._store.packs[place.pack][place.entry.body : place.entry.end]
            if base is None:
                raw = _header(place.entry.type, place.entry.size) + body
            else:
                raw = _header(_OFS_DELTA, place.entry.size) + _back(start - self._offsets[base]) + body
        self._put(one, raw)

    def _append_delta(self, one: bytes, start: int) -> bool:
        """Make a delta against the newer version, when that is written already and it saves half."""
        base = self._bases.get(one)
        if base is None or base not in self._offsets:
            return False
        kind, target = self._store.graph.objects[one].kind, self._store.read(one)
        delta = make_delta(self._store.read(base), target, kind, self._store.form)
        if 2 * len(delta) > len(target):
            return False
        back = _back(start - self._offsets[base])
        self._put(one, _header(_OFS_DELTA, len(delta)) + back + bytes(deflate.zlib_compress(delta, LEVEL)))
        return True

    def _put(self, one: bytes, raw: bytes) -> None:
        self._offsets[one], self._crcs[one] = len(self._data), zlib.crc32(raw)
        self._data += raw


def _order(store: ObjectStore, one: bytes) -> tuple[int, int, bytes]:
    place = store.places[one]
    return (place.pack, place.entry.start, b"") if place.entry else (len(store.packs), 0, one)


def _header(kind: int, size: int) -> bytes:
    octet, size = kind << 4 | size & 15, size >> 4
    out = bytearray()
    while size:
        out.append(octet | 0x80)
        octet, size = size & 0x7F, size >> 7
    out.append(octet)
    return bytes(out)


def _back(distance: int) -> bytes:
    out = [distance & 0x7F]
    while distance := distance >> 7:
        distance -= 1
        out.append(0x80 | distance & 0x7F)
    return bytes(reversed(out))


def _fanout(ids: list[bytes]) -> bytes:
    counts = [0] * 256
    for one in ids:
        counts[one[0]] += 1
    total, table = 0, b""
    for count in counts:
        total += count
        table += struct.pack(">I", total)
    return table


def _offsets(offsets: list[int]) -> bytes:
    large = [offset for offset in offsets if offset >= 1 << 31]
    rank = {offset: number for number, offset in enumerate(large)}
    small = [offset if offset not in rank else 1 << 31 | rank[offset] for offset in offsets]
    return struct.pack(f">{len(small)}I", *small) + struct.pack(f">{len(large)}Q", *large)


def _checksum(form: Format, data: bytes) -> bytes:
    state: Any = sha1(data) if form == "sha1" else hashlib.sha256(data)
    result: bytes = state.digest()
    assert len(result) == ID_BYTES[form], "the checksum is as long as an id"
    return result


def _check_name(entry: TreeEntry) -> None:
    # what git refuses to check out, and what would leave the work tree
    if entry.name in (b"", b".", b"..") or b"/" in entry.name or entry.name.lower() == b".git":
        raise HostileInputError(f"a tree entry that must not be checked out: {entry.name!r}")
