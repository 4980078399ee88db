"""Content in memory or in a nameless file reads the same, for as long as somebody has the buffer."""

from __future__ import annotations

import gc

import pytest

from pipeline.scan.buffer import SPOOL_BYTES, Buffer, Spool


def spooled(data: bytes) -> Buffer:
    """A buffer whose spool is gone."""
    spool = Spool()
    for start in range(0, len(data), 1 << 20):
        spool.write(data[start : start + (1 << 20)])
    return spool.buffer()


@pytest.mark.parametrize("size", [0, 1, SPOOL_BYTES, SPOOL_BYTES + 1, 3 * SPOOL_BYTES])
def test_a_buffer_outlives_its_spool(size: int) -> None:
    data = bytes(range(256)) * (size // 256) + bytes(size % 256)
    buffer = spooled(data)
    gc.collect()

    assert len(buffer) == size
    assert buffer[:] == data
    assert buffer[size // 2 : size // 2 + 7] == data[size // 2 : size // 2 + 7]
    assert buffer[size : size + 5] == b""
