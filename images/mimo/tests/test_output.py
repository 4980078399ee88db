"""The bounded tail of an output: sizes, the stated cut, code points, bytes that are no text."""

from __future__ import annotations

import random
import re

import pytest
from arena.output import LIMIT_BYTES, Tail

CUT = re.compile(r"\A\[(\d+) bytes of output cut here; this is its end\]\n")


def tail_of(data: bytes, chunk_bytes: int = 65536) -> Tail:
    tail = Tail()
    for start in range(0, len(data), chunk_bytes):
        tail.add(data[start : start + chunk_bytes])
    return tail


@pytest.mark.parametrize("size", [0, 1, LIMIT_BYTES - 1, LIMIT_BYTES])
def test_what_fits_comes_whole(size: int) -> None:
    assert tail_of(b"x" * size).text() == "x" * size


@pytest.mark.parametrize("character", ["a", "é", "€", "😀"])
def test_no_code_point_is_split_at_any_offset_around_the_limit(character: str) -> None:
    width = len(character.encode())
    for length in range(LIMIT_BYTES - 12, LIMIT_BYTES + 90):
        data = b"-" * (length % width) + character.encode() * (length // width)
        text = tail_of(data, 4096).text()
        cut = CUT.match(text)
        end = text[cut.end() :] if cut else text
        assert len(text.encode()) <= LIMIT_BYTES
        assert "\ufffd" not in text
        assert data.endswith(end.encode())
        assert (int(cut[1]) if cut else 0) == len(data) - len(end.encode())


@pytest.mark.parametrize("chunk_bytes", [1, 7, 11_999, 12_000, 12_004, 12_005, 1 << 20])
def test_chunks_do_not_matter(chunk_bytes: int) -> None:
    data = bytes(random.Random(3).choices(b"abc\n", k=30_000))
    assert tail_of(data, chunk_bytes).text() == tail_of(data).text()


@pytest.mark.parametrize("size", [5_000, 11_999, 12_000, 12_001, 12_005, 40_000])
def test_bytes_that_are_no_text_are_replaced_within_the_limit(size: int) -> None:
    text = tail_of(bytes(random.Random(size).choices(range(128, 256), k=size))).text()
    assert "\ufffd" in text
    assert len(text.encode()) <= LIMIT_BYTES


def test_random_mixtures_stay_within_the_limit_and_count_right() -> None:
    generator = random.Random(11)
    for _ in range(60):
        pieces = [generator.choice([b"a", "é".encode(), "€".encode(), "😀".encode()]) for _ in range(9_000)]
        data = b"".join(pieces)
        text = tail_of(data, generator.choice([1000, 4096, 50_000])).text()
        cut = CUT.match(text)
        assert cut is not None
        assert data.endswith(text[cut.end() :].encode())
        assert int(cut[1]) + len(text[cut.end() :].encode()) == len(data)
        assert len(text.encode()) <= LIMIT_BYTES


def test_a_note_is_part_of_the_limit() -> None:
    text = tail_of(b"y" * 100_000).text("\n[note]\n")
    assert text.endswith("y\n[note]\n")
    assert len(text.encode()) <= LIMIT_BYTES


def test_memory_is_bounded() -> None:
    tail = Tail()
    for _ in range(2000):
        tail.add(b"z" * (1 << 18))
    assert tail.total_bytes == 2000 << 18
    assert len(tail._kept) <= LIMIT_BYTES + 4
