"""A pack read front to back, trusting neither its index nor its own counts (gitformat-pack, "pack-*.pack files").

Every object is inflated, its deltas are resolved, and its id is computed. Objects without deltas are hashed as they
inflate, so a large blob never stands in memory; a delta chain is walked from its base, so only one path of it does.
"""

from __future__ import annotations

import hashlib
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from pipeline.errors import HostileInputError
from pipeline.scan.buffer import PIECE_BYTES, Buffer, digest_of_pieces, sha1
from pipeline.scan.limits import Limits
from pipeline.scan.objects import ID_BYTES, KINDS, Format, GitObject, Kind, hasher, make_object

OFS_DELTA, REF_DELTA = 6, 7


class PackEntry(NamedTuple):
    """Where one entry stands: `start` of its header, `body` of its zlib stream, `end` after it; `size` unpacked."""

    start: int
    body: int
    end: int
    type: int
    size: int
    base_offset: int = 0
    base_id: bytes = b""


class PackedObject(NamedTuple):
    """An object and its entry; `data` is its content, but for blobs that were hashed while they inflated."""

    object: GitObject
    entry: PackEntry
    data: bytes | None


def pack_format(pack: Buffer) -> Format:
    """Which hash a pack is made with, from its trailer; HostileInputError when neither fits or it is no pack."""
    if len(pack) < 32 or pack[:4] != b"PACK" or int.from_bytes(pack[4:8], "big") not in (2, 3):
        raise HostileInputError("not a git pack of version 2 or 3")
    size = len(pack)
    if digest_of_pieces(sha1(), pack, size - 20) == pack[size - 20 :]:
        return "sha1"
    if digest_of_pieces(hashlib.sha256(), pack, size - 32) == pack[size - 32 :]:
        return "sha256"
    raise HostileInputError("a git pack that is damaged: its checksum is of other bytes")


def read_pack(
    pack: Buffer, limits: Limits, fetch: Callable[[bytes], tuple[Kind, bytes] | None] = lambda _: None
) -> Iterator[PackedObject]:
    """Every object of the pack. `fetch` gives the bases of a thin pack, when the caller has them.

    HostileInputError for damage, trailing bytes, a delta without its base, or a broken limit.
    """
    form = pack_format(pack)
    entries = list(_entries(pack, form, limits))
    return _Resolver(pack, form, limits, entries, fetch).objects()


def inflate_entry(pack: Buffer, entry: PackEntry, limit_bytes: int) -> bytes:
    """The content of an entry, or the delta of one that is a delta."""
    if entry.size > limit_bytes:
        raise HostileInputError(f"a git object of {entry.size} bytes inside a delta chain")
    data = zlib.decompress(pack[entry.body : entry.end])
    if len(data) != entry.size:
        raise HostileInputError("a git object of another size than its header says")
    return data


def apply_delta(base: bytes, delta: bytes, limit_bytes: int) -> bytes:
    """The result of a delta (gitformat-pack, "Deltified representation").

    HostileInputError when it does not fit its base, is malformed, or makes more than the limit.
    """
    try:
        return _apply_delta(base, delta, limit_bytes)
    except IndexError as error:
        raise HostileInputError("a truncated git delta") from error


def _apply_delta(base: bytes, delta: bytes, limit_bytes: int) -> bytes:
    base_size, at = _size(delta, 0)
    result_size, at = _size(delta, at)
    if base_size != len(base):
        raise HostileInputError("a git delta for another base")
    if result_size > limit_bytes:
        raise HostileInputError(f"a git object of {result_size} bytes inside a delta chain")
    parts: list[bytes] = []
    end, made = len(delta), 0
    while at < end:
        code = delta[at]
        at += 1
        if code & 0x80:
            start = count = 0
            for bit in range(4):
                if code >> bit & 1:
                    start |= delta[at] << 8 * bit
                    at += 1
            for bit in range(3):
                if code >> 4 + bit & 1:
                    count |= delta[at] << 8 * bit
                    at += 1
            parts.append(base[start : start + (count or 0x10000)])
            made += len(parts[-1])
            if made > result_size:
                break
        elif code:
            parts.append(delta[at : at + code])
            at += code
        else:
            raise HostileInputError("a git delta with a reserved instruction")
    result = b"".join(parts)
    if len(result) != result_size:
        raise HostileInputError("a git delta with another result size")
    return result


class _Resolver:
    def __init__(
        self,
        pack: Buffer,
        form: Format,
        limits: Limits,
        entries: list[tuple[PackEntry, bytes]],
        fetch: Callable[[bytes], tuple[Kind, bytes] | None],
    ) -> None:
        self._pack, self._form, self._limits, self._entries, self._fetch = pack, form, limits, entries, fetch
        self._resolved_bytes = 0
        self._by_offset: dict[int, list[PackEntry]] = defaultdict(list)
        self._by_id: dict[bytes, list[PackEntry]] = defaultdict(list)
        for entry, _ in entries:
            if entry.type == OFS_DELTA:
                self._by_offset[entry.base_offset].append(entry)
            elif entry.type == REF_DELTA:
                self._by_id[entry.base_id].append(entry)

    def objects(self) -> Iterator[PackedObject]:
        for entry, known_id in self._entries:
            if entry.type < OFS_DELTA:
                yield from self._family(entry, known_id)
        for base_id in list(self._by_id):
            if (outside := self._fetch(base_id)) is not None:
                yield from self._chain(outside[0], [(self._by_id.pop(base_id), outside[1])])
        if self._by_id or self._by_offset:
            raise HostileInputError("a git pack with deltas whose base is not there")

    def _family(self, entry: PackEntry, known_id: bytes) -> Iterator[PackedObject]:
        kind = KINDS[entry.type - 1]
        leads = entry.start in self._by_offset or known_id in self._by_id
        if kind == "blob" and not leads:
            yield PackedObject(GitObject(known_id, kind, entry.size), entry, None)
            return
        data = inflate_entry(self._pack, entry, self._limits.delta_bytes)
        made = make_object(kind, data, self._form)
        yield PackedObject(made, entry, data)
        if leads:
            yield from self._chain(kind, [(self._children(entry.start, made.id), data)])

    def _children(self, offset: int, object_id: bytes) -> list[PackEntry]:
        return self._by_offset.pop(offset, []) + self._by_id.pop(object_id, [])

    def _chain(self, kind: Kind, stack: list[tuple[list[PackEntry], bytes]]) -> Iterator[PackedObject]:
        while stack:
            waiting, base = stack[-1]
            if not waiting:
                stack.pop()
                continue
            entry = waiting.pop()
            delta = inflate_entry(self._pack, entry, self._limits.delta_bytes)
            data = apply_delta(base, delta, self._limits.delta_bytes)
            self._resolved_bytes += len(data)
            if self._resolved_bytes > self._limits.resolved_bytes:
                raise HostileInputError(f"a git pack whose deltas make more than {self._limits.resolved_bytes} bytes")
            made = make_object(kind, data, self._form)
            yield PackedObject(made, entry, data)
            if children := self._children(entry.start, made.id):
                stack.append((children, data))


def _entries(pack: Buffer, form: Format, limits: Limits) -> Iterator[tuple[PackEntry, bytes]]:
    count = int.from_bytes(pack[8:12], "big")
    if count > limits.objects:
        raise HostileInputError(f"a git pack of {count} objects")
    at, end = 12, len(pack) - ID_BYTES[form]
    for _ in range(count):
        entry, known_id = _entry(pack, at, end, form)
        yield entry, known_id
        at = entry.end
    if at != end:
        raise HostileInputError(f"{end - at} bytes in a git pack that belong to no object")


def _entry(pack: Buffer, start: int, end: int, form: Format) -> tuple[PackEntry, bytes]:
    try:
        head = pack[start : start + 64]
        kind, size, used = _header(head)
        base_offset, base_id = 0, b""
        if kind == OFS_DELTA:
            back, used = _offset(head, used)
            base_offset = start - back
            if back <= 0 or base_offset < 12:
                raise HostileInputError("a git delta that points outside its pack")
        elif kind == REF_DELTA:
            base_id = head[used : used + ID_BYTES[form]]
            used += ID_BYTES[form]
        elif kind not in (1, 2, 3, 4):
            raise HostileInputError(f"a git pack entry of type {kind}")
    except IndexError as error:
        raise HostileInputError("a truncated git pack") from error
    at = start + used
    state = hasher(KINDS[kind - 1], size, form) if kind < OFS_DELTA else None
    stop = _inflate(pack, at, end, size, state.update if state else None)
    return PackEntry(start, at, stop, kind, size, base_offset, base_id), state.digest() if state else b""


def _inflate(pack: Buffer, at: int, end: int, size: int, update: Callable[[bytes], None] | None) -> int:
    """Inflate one stream from `at`, hashing it; where it ends."""
    stream = zlib.decompressobj()
    done = 0
    guess = size + (size >> 10) + 64
    try:
        while not stream.eof:
            piece = pack[at : min(end, at + min(guess, PIECE_BYTES))]
            if not piece:
                raise HostileInputError("a truncated git pack")
            at += len(piece)
            while piece:
                plain = stream.decompress(piece, PIECE_BYTES)
                done += len(plain)
                if update:
                    update(plain)
                if done > size:
                    raise HostileInputError("a git object that is longer than its header says")
                piece = stream.unconsumed_tail if not stream.eof else b""
    except zlib.error as error:
        raise HostileInputError(f"damaged git object data: {error}") from error
    if done != size:
        raise HostileInputError("a git object that is shorter than its header says")
    return at - len(stream.unused_data)


def _header(head: bytes) -> tuple[int, int, int]:
    octet, at = head[0], 1
    kind, size, shift = octet >> 4 & 7, octet & 15, 4
    while octet & 0x80:
        octet = head[at]
        at += 1
        size |= (octet & 0x7F) << shift
        shift += 7
        if shift > 60:
            raise HostileInputError("a git object size out of range")
    return kind, size, at


def _offset(head: bytes, at: int) -> tuple[int, int]:
    octet = head[at]
    value = octet & 0x7F
    at += 1
    while octet & 0x80:
        octet = head[at]
        value = (value + 1) << 7 | octet & 0x7F
        at += 1
        if value > 1 << 60:
            raise HostileInputError("a git delta offset out of range")
    return value, at


def _size(delta: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(delta) or shift > 60:
            raise HostileInputError("a truncated git delta")
        octet = delta[at]
        at += 1
        value |= (octet & 0x7F) << shift
        shift += 7
        if not octet & 0x80:
            return value, at
