"""Nested archives of every kind that is opened: tar, zip, ar, gz, bz2, xz, lzma, zst."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import zstandard

from pipeline.scan.archives import kind_of, members
from pipeline.scan.limits import Budget, Limits

LIMITS = Limits(archive_bytes=1 << 22, archive_members=1000, ratio_free_bytes=1 << 20)


def read(data: bytes) -> None:
    """Open what the content says that it is, and read every member."""
    kind = kind_of(data)
    if kind is not None:
        for inner in members(kind, data, Budget(LIMITS)):
            assert len(inner.data[:]) == len(inner.data)


def _zip(method: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("a", TEXT)
        archive.writestr("b/", b"")
    return out.getvalue()


def _tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        info = tarfile.TarInfo("a")
        info.size = len(TEXT)
        archive.addfile(info, io.BytesIO(TEXT))
    return out.getvalue()[:2048]


TEXT = b"text of a member\n" * 3
_AR = b"!<arch>\n" + b"a/".ljust(48) + b"4".ljust(10) + b"`\nbody"
SEEDS = (
    _tar(),
    *map(_zip, (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)),
    _AR,
    gzip.compress(TEXT, mtime=0) * 2,
    bz2.compress(TEXT),
    lzma.compress(TEXT),
    lzma.compress(TEXT, lzma.FORMAT_ALONE),
    zstandard.compress(TEXT),
)
