"""A sample may say yes in vain, and never says no to content that holds a line."""

from __future__ import annotations

import random

import pytest

from pipeline.scan.sample import Sample
from tests.fakes.leaks import source_text

LONG = [line.strip() for line in source_text("sampled", 5).splitlines() if len(line.strip()) >= 40]


def noise(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


@pytest.mark.parametrize("shortest", [23, 24, 31, 39, 70, 71, 90])
def test_a_line_is_seen_wherever_it_begins(shortest: int) -> None:
    lines = [noise(shortest + more, shortest + more) for more in (0, 7, 40)]
    sample = Sample(lines)
    for line in lines:
        for before in (*range(140), *range(4000, 4200)):
            assert sample.may_hold(noise(before, before) + line), (len(line), before)
            assert sample.may_hold(noise(before, before) + line + noise(1, 5000 + before))


def test_a_line_over_the_border_of_two_blocks_is_seen() -> None:
    line = noise(1, 500)
    sample = Sample([line])
    assert all(sample.may_hold(bytes(before) + line + bytes(9000)) for before in range(3500, 4200))


def test_content_without_a_line_is_not_searched_again() -> None:
    sample = Sample(LONG)
    assert len(LONG) > 3
    assert not sample.may_hold(b"")
    assert not sample.may_hold(noise(2, 300_000))
    assert not sample.may_hold(source_text("another", 40).replace(LONG[0], b""))


def test_pieces_of_a_line_are_not_the_line() -> None:
    sample = Sample([LONG[0]])
    assert not sample.may_hold(LONG[0][:-1] + b"?" + LONG[0][1:])
    assert not sample.may_hold(LONG[0][:30] * 500)


def test_with_short_lines_or_none_nothing_is_excluded() -> None:
    assert Sample([LONG[0], b"only twelve."]).may_hold(b"")
    assert Sample([]).may_hold(b"anything")
