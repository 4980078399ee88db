"""One layer's tar as a stream of entries, for content that may be hostile.

Headers are parsed by `tarfile.TarInfo.frombuf`; the walk is ours, because `tarfile` reads extended headers of any size
into memory. Formats: POSIX.1-2001 pax, GNU long names, old GNU sparse; see tar(5).
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Literal, Protocol

from pipeline.errors import HostileInputError

BLOCK = tarfile.BLOCKSIZE
CHUNK_BYTES = 1 << 20
_LONG_NAME, _LONG_LINK, _PAX, _PAX_GLOBAL, _SPARSE = b"L", b"K", b"x", b"g", b"S"
_EXTENDED = (_LONG_NAME, _LONG_LINK, _PAX, _PAX_GLOBAL, tarfile.SOLARIS_XHDTYPE)
_KINDS: dict[bytes, Literal["file", "dir", "symlink", "hardlink"]] = {
    tarfile.REGTYPE: "file",
    tarfile.AREGTYPE: "file",
    tarfile.CONTTYPE: "file",
    tarfile.DIRTYPE: "dir",
    tarfile.SYMTYPE: "symlink",
    tarfile.LNKTYPE: "hardlink",
}
_SPARSE_EXTENDED_AT, _SPARSE_MORE_AT = 482, 504


class Hash(Protocol):
    """What `hashlib` objects offer here."""

    def update(self, data: bytes, /) -> None:
        """Take bytes."""


@dataclass(frozen=True)
class TarLimits:
    """Of one layer: counts, bytes and depth above which a tar is refused."""

    entries: int = 4_000_000
    unpacked_bytes: int = 64 << 30
    header_bytes: int = 1 << 20
    path_bytes: int = 4096
    depth: int = 256


@dataclass(frozen=True)
class TarEntry:
    """One path of a layer: normal and relative (`""` is the root). `target` is a link's, as written."""

    path: str
    kind: Literal["file", "dir", "symlink", "hardlink", "other"]
    size: int
    target: str
    sparse: bool


class LayerStream:
    """Plain bytes of a layer: counted, hashed, bounded."""

    def __init__(self, plain: BinaryIO, hasher: Hash, limit_bytes: int, where: str) -> None:
        self._plain, self._hasher, self._limit, self._where = plain, hasher, limit_bytes, where
        self.read_bytes = 0

    def read(self, count: int) -> bytes:
        """Up to `count` bytes; fewer only at the end."""
        parts = []
        while count and (part := self._plain.read(min(count, CHUNK_BYTES))):
            parts.append(part)
            count -= len(part)
            self.read_bytes += len(part)
            self._hasher.update(part)
            if self.read_bytes > self._limit:
                raise HostileInputError(f"a layer unpacks to more than {self._limit} bytes", where=self._where)
        return b"".join(parts)

    def chunks(self, size: int) -> Iterator[bytes]:
        """Exactly `size` bytes in pieces, then the padding to a block."""
        left = size
        while left:
            part = self.read(min(left, CHUNK_BYTES))
            if not part:
                raise HostileInputError("a layer ends in the middle of an entry", where=self._where)
            left -= len(part)
            yield part
        self.read(-size % BLOCK)

    def skip(self, size: int) -> None:
        """Read past `size` bytes and their padding."""
        for _ in self.chunks(size):
            pass

    def drain(self) -> None:
        """Read to the end, so that the hash covers every byte."""
        while self.read(CHUNK_BYTES):
            pass


def walk(stream: LayerStream, limits: TarLimits, where: str) -> Iterator[TarEntry]:
    """Entries in the tar's order. The caller may take an entry's bytes with `stream.chunks(entry.size)`, all or none.

    HostileInputError names `where` for broken headers and exceeded limits.
    """
    everywhere: dict[str, str] = {}
    own: dict[str, str] = {}
    count = 0
    while (block := stream.read(BLOCK)) and block != bytes(BLOCK):
        count += 1
        if count > limits.entries:
            raise HostileInputError(f"a layer of more than {limits.entries} tar headers", where=where)
        info = _header(block, where)
        if info.type in _EXTENDED:
            fields = _extended(info, stream, limits, where)
            (everywhere if info.type == _PAX_GLOBAL else own).update(fields)
            continue
        if info.type == _SPARSE:
            _skip_sparse_maps(block, stream)
        entry = _entry(info, {**everywhere, **own}, limits, where)
        own = {}
        before = stream.read_bytes
        yield entry
        if stream.read_bytes == before:
            stream.skip(entry.size)
    stream.drain()


def _header(block: bytes, where: str) -> tarfile.TarInfo:
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.HeaderError as error:
        raise HostileInputError(f"broken tar header: {error}", where=where) from error


def _extended(info: tarfile.TarInfo, stream: LayerStream, limits: TarLimits, where: str) -> dict[str, str]:
    if not 0 <= info.size <= limits.header_bytes:
        raise HostileInputError(f"extended tar header of {info.size} bytes", where=where)
    data = b"".join(stream.chunks(info.size))
    text = data.rstrip(b"\0").decode("utf-8", "surrogateescape")
    if info.type == _LONG_NAME:
        return {"path": text}
    if info.type == _LONG_LINK:
        return {"linkpath": text}
    return dict(_pax_records(data, where))


def _pax_records(data: bytes, where: str) -> Iterator[tuple[str, str]]:
    """`<length> <key>=<value>\\n`, the length counting the whole record."""
    at = 0
    while at < len(data):
        digits = data[at : at + 8].partition(b" ")[0]
        length = int(digits) if digits.isdigit() else 0
        key, equals, value = data[at + len(digits) + 1 : at + length - 1].partition(b"=")
        if not equals or data[at + length - 1 : at + length] != b"\n":
            raise HostileInputError("broken pax header", where=where)
        yield key.decode("utf-8", "surrogateescape"), value.decode("utf-8", "surrogateescape")
        at += length


def _skip_sparse_maps(block: bytes, stream: LayerStream) -> None:
    more = block[_SPARSE_EXTENDED_AT]
    while more:
        following = stream.read(BLOCK)
        more = following[_SPARSE_MORE_AT] if len(following) == BLOCK else 0


def _entry(info: tarfile.TarInfo, pax: dict[str, str], limits: TarLimits, where: str) -> TarEntry:
    sparse = info.type == _SPARSE or any(key.startswith("GNU.sparse.") for key in pax)
    path = normal_path(pax.get("GNU.sparse.name", pax.get("path", info.name)), limits, where)
    kind = "file" if info.type == _SPARSE else _KINDS.get(info.type, "other")
    size = _size(pax.get("size"), info.size, where)
    if kind != "file" and info.type in tarfile.SUPPORTED_TYPES:
        size = 0
    target = pax.get("linkpath", info.linkname)
    return TarEntry(path, kind, size, target, sparse)  # type: ignore[arg-type]


def _size(text: str | None, plain: int, where: str) -> int:
    if text is not None and not (text.isascii() and text.isdigit() and len(text) < 20):
        raise HostileInputError("broken size in a pax header", where=where)
    size = plain if text is None else int(text)
    if size < 0:
        raise HostileInputError("negative size in a tar header", where=where)
    return size


def normal_path(text: str, limits: TarLimits, where: str) -> str:
    """Without leading slashes and dot parts; HostileInputError for `..`, NUL, excessive length or depth."""
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in text or len(text) > limits.path_bytes or len(parts) > limits.depth:
        raise HostileInputError(f"a path that no image needs: {text[:80]!r}", where=where)
    return "/".join(parts)
