"""Content that is in memory when small and in a nameless file when not, read by slices either way."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from typing import IO, Any

PIECE_BYTES = 1 << 20
SPOOL_BYTES = 4 << 20
_WINDOW_BYTES = 256 << 10


class FileBuffer:
    """Slices of a file without mapping it, so resident memory stays small however large it is.

    It keeps the file open for as long as somebody has the buffer.
    """

    def __init__(self, file: IO[bytes]) -> None:
        file.flush()
        self._file = file
        self._descriptor = file.fileno()
        self._size = os.fstat(self._descriptor).st_size
        self._window, self._window_at = b"", 0

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> bytes:
        start, stop, _ = part.indices(self._size)
        count = max(0, stop - start)
        if count > _WINDOW_BYTES:
            return os.pread(self._descriptor, count, start)
        at = start - self._window_at
        if at < 0 or at + count > len(self._window):
            self._window, self._window_at, at = os.pread(self._descriptor, _WINDOW_BYTES, start), start, 0
        return self._window[at : at + count]


Buffer = bytes | FileBuffer


def pieces_of(data: Buffer, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """The content in order, about 1 MiB at a time."""
    stop = len(data) if end is None else end
    for at in range(start, stop, PIECE_BYTES):
        yield data[at : min(at + PIECE_BYTES, stop)]


def digest_of_pieces(state: Any, data: Buffer, end: int | None = None) -> bytes:
    """Feed the content up to `end` to a hash object and give its digest."""
    for piece in pieces_of(data, 0, end):
        state.update(piece)
    result: bytes = state.digest()
    return result


def sha1(data: bytes = b"") -> Any:
    """A SHA-1 state, for git's ids and checksums only."""
    return hashlib.sha1(data, usedforsecurity=False)


class Spool:
    """Write pieces, then read them as a buffer. Use as a context manager."""

    def __init__(self) -> None:
        self._small = bytearray()
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, piece: bytes) -> None:
        """Append; past a few MiB the content moves to the nameless file."""
        if self._file is None and len(self._small) + len(piece) > SPOOL_BYTES:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  (closed in __exit__)
            self._file.write(self._small)
            self._small = bytearray()
        if self._file is None:
            self._small += piece
        else:
            self._file.write(piece)

    def buffer(self) -> Buffer:
        """What was written."""
        return bytes(self._small) if self._file is None else FileBuffer(self._file)
