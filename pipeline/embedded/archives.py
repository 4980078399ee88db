"""Zip and tar.gz archives of package sources, read into memory within limits. Regular files only.

A member with an absolute path, a dot part, a repeated name or a link is refused, not skipped: a package that needs one
is not a package that this pipeline knows.
"""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.errors import HostileInputError

MAX_FILES = 20_000
MAX_FILE_BYTES = 256 << 20
MAX_TOTAL_BYTES = 512 << 20
_DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    EOFError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    OSError,
)


@dataclass(frozen=True)
class ArchivedFile:
    """A regular file of an archive."""

    data: bytes
    executable: bool

    @property
    def mode(self) -> int:
        """0755 or 0644: the two that a wheel, a git tree and a layer of ours tell apart."""
        return 0o755 if self.executable else 0o644


def read_archive(data: bytes, where: str) -> dict[str, ArchivedFile]:
    """Every regular file of a zip or tar.gz by its name; HostileInputError names `where` and the member."""
    try:
        members = _zip_members(data, where) if data[:2] == b"PK" else _tar_members(data, where)
        return _collect(members, where)
    except _DAMAGE as error:
        raise HostileInputError(f"a damaged archive: {error}", where=where) from error


def _collect(members: Iterator[tuple[str, ArchivedFile]], where: str) -> dict[str, ArchivedFile]:
    files: dict[str, ArchivedFile] = {}
    total = 0
    for name, file in members:
        total += len(file.data)
        if name in files or len(files) >= MAX_FILES or total > MAX_TOTAL_BYTES:
            raise HostileInputError(f"a repeated name, too many files or too many bytes at {name!r}", where=where)
        files[name] = file
    return files


def _zip_members(data: bytes, where: str) -> Iterator[tuple[str, ArchivedFile]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for item in archive.infolist():
            mode = item.external_attr >> 16
            name = _checked_name(
                item.filename.removesuffix("/") if item.is_dir() else item.filename, item.file_size, where
            )
            if item.is_dir():
                continue
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                raise HostileInputError(f"not a regular file: {name!r}", where=where)
            with archive.open(item) as stream:
                yield name, ArchivedFile(stream.read(item.file_size + 1), bool(mode & 0o111))


def _tar_members(data: bytes, where: str) -> Iterator[tuple[str, ArchivedFile]]:
    with tarfile.open(fileobj=io.BytesIO(_inflate(data, where)), mode="r:") as archive:
        for member in archive:
            name = _checked_name(member.name, member.size, where)
            if member.isdir():
                continue
            stream = archive.extractfile(member) if member.isreg() else None
            if stream is None:
                raise HostileInputError(f"not a regular file: {name!r}", where=where)
            yield name, ArchivedFile(stream.read(), bool(member.mode & 0o111))


def _inflate(data: bytes, where: str) -> bytes:
    inflater = zlib.decompressobj(wbits=31)
    plain = inflater.decompress(data, MAX_TOTAL_BYTES)
    if not inflater.eof:
        raise HostileInputError(
            f"a gzip stream that is cut off or unpacks to over {MAX_TOTAL_BYTES} bytes", where=where
        )
    return plain


def _checked_name(name: str, size_bytes: int, where: str) -> str:
    if {"", ".", ".."} & set(name.split("/")) or "\\" in name or "\0" in name:
        raise HostileInputError(f"an unsafe name: {name!r}", where=where)
    if size_bytes > MAX_FILE_BYTES:
        raise HostileInputError(f"a file of {size_bytes} bytes: {name!r}", where=where)
    return name
