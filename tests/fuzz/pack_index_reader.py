"""Pack indexes (.idx, versions 1 and 2), multi-pack indexes and commit graphs."""

from __future__ import annotations

import hashlib

from pipeline.scan.gitfiles import chunked_ids, pack_index_ids

CHUNKED = (b"MIDX", b"CGPH")


def read(data: bytes) -> None:
    """A file without its checksum; by its magic, as a layer's scan chooses the reader."""
    if data.startswith(CHUNKED):
        ids = chunked_ids(data)
    else:
        ids = pack_index_ids(data + hashlib.sha1(data, usedforsecurity=False).digest())
    assert all(type(one) is bytes for one in ids)


def _fan_out(count: int) -> bytes:
    return count.to_bytes(4, "big") * 256


def _chunked(magic: bytes, head: bytes) -> bytes:
    table = len(magic) + len(head)
    start = table + 24
    rows = b"OIDL" + start.to_bytes(8, "big") + bytes(4) + (start + 40).to_bytes(8, "big")
    return magic + head + rows + b"o" * 40


SEEDS = (
    b"\xfftOc" + (2).to_bytes(4, "big") + _fan_out(2) + b"i" * 40 + bytes(16) + b"p" * 20,
    _fan_out(2) + bytes(4) + b"i" * 20 + bytes(4) + b"j" * 20 + b"p" * 20,
    _chunked(b"MIDX", b"\1\1\1\0" + (1).to_bytes(4, "big")),
    _chunked(b"CGPH", b"\1\1\1\0"),
)
