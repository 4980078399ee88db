"""Packs made by hand, so that tests can make wrong ones too."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence


def with_trailer(body: bytes) -> bytes:
    """A body and its SHA-1, as packs and indexes end."""
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def entry(kind: int, data: bytes, between: bytes = b"", size: int | None = None) -> bytes:
    """One pack entry: header, base reference, zlib stream."""
    length = len(data) if size is None else size
    octet, length = kind << 4 | length & 15, length >> 4
    head = bytearray()
    while length:
        head.append(octet | 0x80)
        octet, length = length & 0x7F, length >> 7
    return bytes([*head, octet]) + between + zlib.compress(data)


def make_pack(objects: Sequence[tuple[int, bytes]], count: int | None = None, extra: bytes = b"") -> bytes:
    """A pack of whole objects (1 commit, 2 tree, 3 blob, 4 tag); `count` may lie."""
    return pack_of([entry(kind, data) for kind, data in objects], count, extra)


def pack_of(entries: Sequence[bytes], count: int | None = None, extra: bytes = b"") -> bytes:
    """A pack of entries that are ready."""
    number = len(entries) if count is None else count
    return with_trailer(b"PACK" + (2).to_bytes(4, "big") + number.to_bytes(4, "big") + b"".join(entries) + extra)


def back(distance: int) -> bytes:
    """The distance of a delta to its base earlier in the pack."""
    out = [distance & 0x7F]
    while distance := distance >> 7:
        distance -= 1
        out.append(0x80 | distance & 0x7F)
    return bytes(reversed(out))
