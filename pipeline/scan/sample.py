"""A cheap first test for long lines in large content: it may say yes in vain, and is never wrong when it says no.

Looking at eight bytes of every few dozen is enough: a line that is long enough covers one of those places whole,
wherever it begins. So all eight-byte pieces of each line's beginning are known, and those of the content are looked up
among them. Where one is, the whole line is searched around it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from struct import Struct

_PIECE_BYTES = 8
_STEPS_BYTES = (16, 64)
_BLOCK = 64


class Sample:
    """Made of the lines once. With a line of fewer than 23 bytes among them every content may hold one."""

    def __init__(self, lines: Collection[bytes]) -> None:
        step = min(min(map(len, lines), default=0) - _PIECE_BYTES + 1, _STEPS_BYTES[1])
        self._step = step if step >= _STEPS_BYTES[0] else 0
        self._reach = max(map(len, lines), default=0)
        self._lines: dict[bytes, list[bytes]] = {}
        for line in lines:
            for at in range(self._step):
                self._lines.setdefault(line[at : at + _PIECE_BYTES], []).append(line)
        self._pieces = frozenset(self._lines)
        one = f"{_PIECE_BYTES}s{self._step - _PIECE_BYTES}x" if self._step else ""
        self._layouts = [Struct(one * count) for count in range(_BLOCK + 1)]

    def may_hold(self, data: bytes) -> bool:
        """False only when none of the lines is anywhere in the content."""
        if not self._step:
            return True
        size = self._step * _BLOCK
        for number, pieces in enumerate(self._blocks(data)):
            if not self._pieces.isdisjoint(pieces):
                around = data[max(0, number * size - self._reach) : (number + 1) * size + self._reach]
                if any(line in around for piece in self._pieces.intersection(pieces) for line in self._lines[piece]):
                    return True
        return False

    def _blocks(self, data: bytes) -> Iterator[tuple[bytes, ...]]:
        size = self._step * _BLOCK
        rest = len(data) % size
        whole = len(data) - rest
        yield from self._layouts[_BLOCK].iter_unpack(memoryview(data)[:whole])
        if rest:
            count = -(-rest // self._step)
            yield self._layouts[count].unpack(data[whole:].ljust(count * self._step, b"\0"))
