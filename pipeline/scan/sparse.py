"""The whole content of a sparse tar member: what a runtime writes, holes as zeros, so hiding data behind one is no use.

Formats: GNU tar manual, "Storing Sparse Files": the old GNU map in header blocks, pax 0.1 and 1.0. The pax 0.0 map
repeats keys and is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.errors import HostileInputError
from pipeline.scan.stream import Reader
from pipeline.scan.tar import BLOCK, Member

EXPANDED_BYTES = 1 << 30
_ZEROS = bytes(1 << 20)
_OLD_MAP_AT, _OLD_MAP_ROWS, _ROW_BYTES = 386, 4, 24


def expand(member: Member, reader: Reader) -> Iterator[bytes]:
    """The content in pieces, from the member's stored content. HostileInputError for a map that is wrong."""
    stored = _Stored(reader, member.size)
    rows, size = _old_map(member) if b"GNU.sparse.major" not in member.pax else _pax_map(member, stored)
    if size > EXPANDED_BYTES:
        raise HostileInputError(f"a sparse file of {size} bytes; {EXPANDED_BYTES} are examined at most")
    at = 0
    for offset, count in rows:
        if offset < at or offset + count > size:
            raise HostileInputError("a sparse map that overlaps or leaves its file")
        yield from _hole(offset - at)
        yield from stored.pieces(count)
        at = offset + count
    yield from _hole(size - at)


class _Stored:
    def __init__(self, reader: Reader, size: int) -> None:
        self._reader, self.left = reader, size

    def pieces(self, count: int) -> Iterator[bytes]:
        """The next `count` stored bytes."""
        if count > self.left:
            raise HostileInputError("a sparse map of more than is stored")
        self.left -= count
        yield from self._reader.pieces(count)

    def line(self) -> int:
        """A decimal number and a line feed."""
        text = b""
        while not text.endswith(b"\n") and len(text) < 20:
            text += b"".join(self.pieces(1))
        if not text.endswith(b"\n") or not text[:-1].isdigit():
            raise HostileInputError("a sparse map that is not of numbers")
        return int(text)


def _pax_map(member: Member, stored: _Stored) -> tuple[list[tuple[int, int]], int]:
    size = _decimal(member.pax.get(b"GNU.sparse.realsize", b""))
    if (member.pax.get(b"GNU.sparse.major"), member.pax.get(b"GNU.sparse.minor")) != (b"1", b"0"):
        raise HostileInputError("a sparse map of an unknown version")
    before = stored.left
    rows = [(stored.line(), stored.line()) for _ in range(min(stored.line(), before))]
    for _ in stored.pieces(-(before - stored.left) % BLOCK):
        pass
    return rows, size


def _old_map(member: Member) -> tuple[list[tuple[int, int]], int]:
    if b"GNU.sparse.map" in member.pax:
        numbers = [_decimal(text) for text in member.pax[b"GNU.sparse.map"].split(b",")]
        if len(numbers) % 2:
            raise HostileInputError("a sparse map whose last row is half")
        return list(zip(numbers[::2], numbers[1::2], strict=True)), _decimal(member.pax.get(b"GNU.sparse.size", b""))
    if any(key.startswith(b"GNU.sparse") for key in member.pax):
        raise HostileInputError("a sparse map of pax version 0.0")
    blocks = [member.header[at : at + BLOCK] for at in range(member.header_at, len(member.header), BLOCK)]
    head = blocks[0]
    rows = [*_rows(head[_OLD_MAP_AT : _OLD_MAP_AT + _OLD_MAP_ROWS * _ROW_BYTES])]
    for block in blocks[1:]:
        rows += _rows(block[: 21 * _ROW_BYTES])
    return rows, _octal(head[483:495])


def _rows(part: bytes) -> Iterator[tuple[int, int]]:
    for at in range(0, len(part), _ROW_BYTES):
        row = part[at : at + _ROW_BYTES]
        if row[0]:
            yield _octal(row[:12]), _octal(row[12:])


def _octal(octets: bytes) -> int:
    if octets[0] & 0x80:
        return int.from_bytes(octets[1:], "big")
    text = octets.partition(b"\0")[0].strip()
    if any(octet not in b"01234567" for octet in text):
        raise HostileInputError("a sparse map that is not of numbers")
    return int(text or b"0", 8)


def _decimal(text: bytes) -> int:
    if not text.isdigit() or len(text) > 18:
        raise HostileInputError("a sparse map that is not of numbers")
    return int(text)


def _hole(count: int) -> Iterator[bytes]:
    while count > 0:
        yield _ZEROS[:count]
        count -= len(_ZEROS)
