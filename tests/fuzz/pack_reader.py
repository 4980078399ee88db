"""Packs: entries, deltas of both kinds, both hashes. The trailer is made here, so that what is before it is read."""

from __future__ import annotations

import hashlib

from pipeline.scan.limits import Limits
from pipeline.scan.pack import read_pack
from tests.fakes.packs import back, entry, pack_of

LIMITS = Limits(objects=1000, delta_bytes=1 << 20)
SHA256 = b"\1"


def read(data: bytes) -> None:
    """The first byte says which hash; the rest is a pack without its trailer."""
    body = data[1:]
    trailer = hashlib.sha256(body) if data[:1] == SHA256 else hashlib.sha1(body, usedforsecurity=False)
    for packed in read_pack(body + trailer.digest(), LIMITS):
        assert packed.data is None or len(packed.data) == packed.object.size


def _blob_id(data: bytes) -> bytes:
    return hashlib.sha1(b"blob %d\0%s" % (len(data), data), usedforsecurity=False).digest()


_BLOB = b"a line of a blob\n" * 4
_COPY = bytes([len(_BLOB), 20, 0x90, 16, 4]) + b"more"  # copies 16 bytes, then inserts four
_BASE = entry(3, _BLOB)
_SMALL = (
    entry(1, b"tree " + b"0" * 40 + b"\n\nx"),
    entry(2, b"100644 a\0" + bytes(20)),
    entry(4, b"object " + b"1" * 40 + b"\n"),
)
SEEDS = (
    b"\0" + pack_of([*_SMALL, _BASE])[:-20],
    b"\0" + pack_of([_BASE, entry(6, _COPY, back(len(_BASE)))])[:-20],
    b"\0" + pack_of([entry(7, _COPY, _blob_id(_BLOB)), _BASE])[:-20],
    SHA256 + pack_of([_BASE, entry(6, _COPY, back(len(_BASE)))])[:-20],
)
