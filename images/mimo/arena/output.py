"""The end of a command's output in at most LIMIT_BYTES of UTF-8, with the cut stated and no code point split."""

from __future__ import annotations

LIMIT_BYTES = 12_000
_LONGEST_SEQUENCE = 4
_KEEP = LIMIT_BYTES + _LONGEST_SEQUENCE


class Tail:
    """Counts every byte and keeps the last ones: memory is bounded however much is added."""

    def __init__(self) -> None:
        self.total_bytes = 0
        self._kept = b""

    def add(self, chunk: bytes) -> None:
        """Take the next bytes of the output."""
        self.total_bytes += len(chunk)
        self._kept = chunk[-_KEEP:] if len(chunk) >= _KEEP else (self._kept + chunk)[-_KEEP:]

    def text(self, note: str = "") -> str:
        """The output and then `note`, together at most LIMIT_BYTES when encoded."""
        return bounded(self._kept, self.total_bytes, note)


def bounded(kept: bytes, total_bytes: int, note: str = "") -> str:
    """`kept` is the end (at least LIMIT_BYTES + 4, or all) of an output of `total_bytes` bytes."""
    room = LIMIT_BYTES - len(note.encode())
    if total_bytes == len(kept):
        whole = kept.decode("utf-8", "replace")
        if _size(whole) <= room:
            return whole + note
    start = _first_start(kept, room - len(_cut_line(total_bytes)))
    return _cut_line(total_bytes - len(kept) + start) + kept[start:].decode("utf-8", "replace") + note


def _cut_line(count: int) -> str:
    return f"[{count} bytes of output cut here; this is its end]\n"


def _first_start(kept: bytes, room: int) -> int:
    """The smallest offset, on a boundary, from where the text takes at most `room` bytes."""
    start = max(0, len(kept) - room)
    while True:
        start = _boundary(kept, start)
        excess = _size(kept[start:].decode("utf-8", "replace")) - room
        if excess <= 0:
            return start
        # A replaced byte takes three; a third of the excess never overshoots.
        start += max(1, excess // 3)


def _boundary(kept: bytes, offset: int) -> int:
    """`offset`, or the end of the valid sequence that it would split."""
    for lead in range(max(0, offset - _LONGEST_SEQUENCE + 1), offset):
        for length in range(offset - lead + 1, _LONGEST_SEQUENCE + 1):
            if _is_one_character(kept[lead : lead + length]):
                return lead + length
    return offset


def _is_one_character(piece: bytes) -> bool:
    try:
        return len(piece.decode()) == 1
    except UnicodeDecodeError:
        return False


def _size(text: str) -> int:
    return len(text.encode())
