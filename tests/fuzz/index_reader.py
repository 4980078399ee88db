"""Git indexes (DIRC, versions 2 to 4) with their cache-tree and resolve-undo extensions, in both hashes."""

from __future__ import annotations

import hashlib

from pipeline.scan.gitfiles import index_ids

SHA256 = b"\1"


def read(data: bytes) -> None:
    """The first byte says which hash; the rest is an index without its checksum."""
    body = b"DIRC" + data[1:]
    checksum = hashlib.sha256(body) if data[:1] == SHA256 else hashlib.sha1(body, usedforsecurity=False)
    assert all(type(one) is bytes for one in index_ids(body + checksum.digest()))


def _extension(name: bytes, body: bytes) -> bytes:
    return name + len(body).to_bytes(4, "big") + body


def _index(version: int, id_bytes: int) -> bytes:
    flags = b"\x40\1\0\0" if version == 3 else b"\0\1"
    name = b"\0a\0" if version == 4 else b"a"
    one = bytes(40) + b"i" * id_bytes + flags + name
    padded = one if version == 4 else one + bytes(8 - len(one) % 8)
    tree = _extension(b"TREE", b"\x001 1\n" + b"t" * id_bytes + b"d\0-1 0\n")
    undo = _extension(b"REUC", b"a\x00100644\x000\x00100644\0" + b"u" * 2 * id_bytes)
    return version.to_bytes(4, "big") + (1).to_bytes(4, "big") + padded + tree + undo


SEEDS = (*(b"\0" + _index(version, 20) for version in (2, 3, 4)), SHA256 + _index(2, 32))
