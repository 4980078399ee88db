"""Checksums of tar headers: of unsigned bytes, of signed ones as some old writers made them, and of any other value."""

from __future__ import annotations

import random

import pytest

from pipeline.scan.tar import BLOCK, is_header


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
