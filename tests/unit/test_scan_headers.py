"""Checksums of tar headers: of unsigned bytes, of signed ones as some old writers made them, and of any other value."""

from __future__ import annotations

import random
import tarfile

import pytest

from pipeline.errors import HostileInputError
from pipeline.scan.limits import Limits
from pipeline.scan.stream import Reader
from pipeline.scan.tar import BLOCK, is_header, walk


def header(body: bytes, shift: int = 0, *, signed: bool = False) -> bytes:
    total = sum(byte - 256 if signed and byte > 127 else byte for byte in body[:148] + body[156:]) + 256
    return body[:148] + b"%06o\0 " % (total + shift) + body[156:]


@pytest.mark.parametrize("body", [bytes([255]) * BLOCK, bytes(511) + b"\1", random.Random(1).randbytes(BLOCK)])
def test_the_sum_of_all_bytes_but_its_own_field(body: bytes) -> None:
    assert is_header(header(body))
    assert not is_header(header(body, 1))
    assert not is_header(header(body, -1))


def test_a_sum_of_signed_bytes() -> None:
    body = b"name-\xe9\xff".ljust(BLOCK, b"\0")
    assert is_header(header(body, signed=True))
    assert not is_header(header(body, 1, signed=True))


def test_every_byte_counts() -> None:
    block = header(random.Random(2).randbytes(BLOCK))
    for at in (*range(148), *range(156, BLOCK)):
        changed = bytearray(block)
        changed[at] ^= 1
        assert not is_header(bytes(changed)), at


@pytest.mark.parametrize("size", [b"0o17", b"1_0", b"+7", b"-7", b"8", b"0x1", b"1 1"])
def test_a_size_that_a_runtime_would_refuse_is_refused(size: bytes) -> None:
    body = bytearray(tarfile.TarInfo("name").tobuf(tarfile.USTAR_FORMAT))
    body[124:136] = size.ljust(12, b"\0")
    with pytest.raises(HostileInputError, match="not octal"):
        list(walk(Reader(iter([header(bytes(body)) + bytes(2 * BLOCK)])), Limits()))
