"""Members of nested archives: tar, ar, zip, and the compressions around them. Bounded by one budget a layer."""

from __future__ import annotations

import bz2
import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Protocol

from pipeline.errors import HostileInputError
from pipeline.scan import stream, tar
from pipeline.scan.buffer import PIECE_BYTES, Buffer, Spool, pieces_of
from pipeline.scan.limits import Budget

_MEMORY_BYTES = 96 << 20
_NOT_OPENED = {b"7z\xbc\xaf\x27\x1c": "7z", b"Rar!\x1a\x07": "rar", b"070701": "cpio", b"070702": "cpio"}
_LZMA_ALONE = re.compile(rb"\x5d\0\0[\0\x01\x02\x04\x08\x10\x20\x40\x80][\0\x01\x02\x04]\xff{8}", re.S)
_V7_TAR = re.compile(rb"[^\0].{99}[0-7 ]{6,7}[\0 ].{40}[0-7 ]{6}[\0 ]{2}", re.S)


@dataclass(frozen=True)
class Inner:
    """One member: its name inside the archive and its content."""

    name: bytes
    data: Buffer


class _Inflater(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1, /) -> bytes: ...


def kind_of(data: Buffer) -> str | None:
    """tar, zip, ar, gz, bz2, xz, lzma, zst, one of those that are not opened, or None. By content, never by name."""
    head = data[:265]
    if head.startswith(b"\x1f\x8b\x08"):
        return "gz"
    if head.startswith(b"PK\x03\x04") or (head.startswith((b"#!", b"MZ")) and _ends_as_zip(data)):
        return "zip"
    if head[257:262] == b"ustar":
        return "tar"
    if head.startswith(b"\xfd7zXZ\0"):
        return "xz"
    if head.startswith(b"BZh") and head[4:10] == b"1AY&SY":
        return "bz2"
    if head.startswith(stream.ZSTD_MAGIC):
        return "zst"
    if head.startswith(b"!<arch>\n"):
        return "ar"
    if _LZMA_ALONE.match(head):
        return "lzma"
    if _V7_TAR.match(head) and tar.is_header(data[: tar.BLOCK]):
        return "tar"
    return next((name for magic, name in _NOT_OPENED.items() if head.startswith(magic)), None)


def _ends_as_zip(data: Buffer) -> bool:
    return data[max(0, len(data) - 65557) :].rfind(b"PK\x05\x06") >= 0


def members(kind: str, data: Buffer, budget: Budget) -> Iterator[Inner]:
    """The regular files inside. A compressed file is an archive of one member without a name.

    HostileInputError for damage, encryption, and every broken limit; members that were whole come before it.
    """
    if kind == "tar":
        yield from _tar(data, budget)
    elif kind == "zip":
        yield from _zip(data, budget)
    elif kind in _NOT_OPENED.values():
        raise HostileInputError(f"a {kind} archive, which is not opened")
    elif kind == "ar":
        yield from _ar(data, budget)
    else:
        with _spooled(_unpack(kind, data), budget, len(data)) as plain:
            yield Inner(b"", plain)


def _tar(data: Buffer, budget: Budget) -> Iterator[Inner]:
    reader = stream.Reader(pieces_of(data))
    for member in tar.walk(reader, budget.limits):
        budget.member()
        if member.kind == "file" and member.size:
            start = reader.offset
            with _window(data, start, member.size) as content:
                yield Inner(member.path, content)
    if hidden := tar.trailing(reader):
        raise HostileInputError(f"{hidden} bytes after the end of a tar archive")


@contextmanager
def _window(data: Buffer, start: int, size: int) -> Iterator[Buffer]:
    if start + size > len(data):
        raise HostileInputError("a truncated tar archive")
    with Spool() as spool:
        for piece in pieces_of(data, start, start + size):
            spool.write(piece)
        yield spool.buffer()


def _zip(data: Buffer, budget: Budget) -> Iterator[Inner]:
    try:
        with zipfile.ZipFile(io.BytesIO(data) if isinstance(data, bytes) else _Seekable(data)) as archive:
            for info in archive.infolist():
                budget.member()
                if not info.file_size:  # a folder that has content is read like a file
                    continue
                if info.flag_bits & 1:
                    raise HostileInputError(f"an encrypted zip member: {info.filename!r}")
                if info.compress_type == zipfile.ZIP_LZMA:
                    _check_dictionary(data, info.header_offset)
                name = info.filename.encode("utf-8", "surrogateescape")
                with archive.open(info) as member, _spooled(_pieces(member), budget, info.compress_size) as content:
                    yield Inner(name, content)
    except (
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        NotImplementedError,
        EOFError,
        OSError,
        OverflowError,  # an offset that no file has
        ValueError,
    ) as error:
        raise HostileInputError(f"a damaged zip archive: {error}") from error


def _check_dictionary(data: Buffer, at: int) -> None:
    """zipfile sets no limit on an LZMA member's memory (APPNOTE 5.8.8: the dictionary size follows the properties)."""
    names = data[at + 26 : at + 30]
    start = at + 30 + int.from_bytes(names[:2], "little") + int.from_bytes(names[2:], "little")
    if (size := int.from_bytes(data[start + 5 : start + 9], "little")) > _MEMORY_BYTES:
        raise HostileInputError(f"a zip member that needs {size} bytes of memory")


def _ar(data: Buffer, budget: Budget) -> Iterator[Inner]:
    at = 8
    while at + 60 <= len(data):
        header = data[at : at + 60]
        size_text = header[48:58].strip()
        if header[58:60] != b"`\n" or not size_text.isdigit():
            raise HostileInputError("a damaged ar archive")
        budget.member()
        with _window(data, at + 60, int(size_text)) as content:
            yield Inner(header[:16].strip().rstrip(b"/"), content)
        at += 60 + int(size_text) + int(size_text) % 2


def _unpack(kind: str, data: Buffer) -> Iterator[bytes]:
    if kind in ("gz", "zst"):
        yield from stream.inflate(pieces_of(data))
        return
    try:
        yield from _unpack_members(kind, data)
    except (OSError, EOFError, ValueError, lzma.LZMAError) as error:
        raise HostileInputError(f"damaged {kind} data: {error}") from error


def _unpack_members(kind: str, data: Buffer) -> Iterator[bytes]:
    state: _Inflater | None = None
    for piece in pieces_of(data):
        while piece:
            if state is None:
                if not piece.strip(b"\0"):
                    break
                state = bz2.BZ2Decompressor() if kind == "bz2" else lzma.LZMADecompressor(memlimit=_MEMORY_BYTES)
            yield state.decompress(piece, PIECE_BYTES)
            while not state.eof and not getattr(state, "needs_input"):  # noqa: B009
                yield state.decompress(b"", PIECE_BYTES)
            piece, state = (state.unused_data, None) if state.eof else (b"", state)
    if state is not None:
        raise HostileInputError(f"truncated {kind} data")


@contextmanager
def _spooled(pieces: Iterator[bytes], budget: Budget, packed: int) -> Iterator[Buffer]:
    """Content in memory when small, in a nameless file when not."""
    total = 0
    with Spool() as spool:
        for piece in pieces:
            total += len(piece)
            budget.spend(len(piece), packed, total)
            spool.write(piece)
        yield spool.buffer()


def _pieces(member: IO[bytes]) -> Iterator[bytes]:
    while piece := member.read(PIECE_BYTES):
        yield piece


class _Seekable(io.RawIOBase):
    """A buffer as a seekable file, for zipfile."""

    def __init__(self, data: Buffer) -> None:
        self._data, self._at = data, 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = max(0, (0, self._at, len(self._data))[whence] + offset)
        return self._at

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        piece = self._data[self._at : self._at + len(view)]
        view[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def read(self, size: int | None = -1) -> bytes:
        end = len(self._data) if size is None or size < 0 else self._at + size
        piece = self._data[self._at : end]
        self._at += len(piece)
        return piece
