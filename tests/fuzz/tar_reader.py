"""Tar archives: headers, pax records, long names, sparse maps and what stands after the end."""

from __future__ import annotations

import io
import tarfile

from pipeline.scan import tar
from pipeline.scan.limits import Limits
from pipeline.scan.sparse import expand
from pipeline.scan.stream import Reader

LIMITS = Limits(entries=1000, header_bytes=1 << 16)


def read(data: bytes) -> None:
    """Walk an archive, with every content read."""
    reader = Reader(iter([_with_checksums(data)]))
    for member in tar.walk(reader, LIMITS):
        assert tar.undisplay(tar.display(member.path)) == member.path
        assert b".." not in member.path.split(b"/")
        if member.sparse and member.kind == "file":
            for _ in expand(member, reader):
                pass
    tar.trailing(reader)


def _with_checksums(data: bytes) -> bytes:
    """Right checksums in all blocks that stand where a header has its magic: a fuzzer does not find them by chance."""
    out = bytearray(data)
    for at in range(0, len(out) - 511, 512):
        if out[at + 257 : at + 262] == b"ustar":
            out[at + 148 : at + 156] = b" " * 8
            out[at + 148 : at + 156] = b"%06o\0 " % sum(out[at : at + 512])
    return bytes(out)


def _archive(form: int, **pax: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, kind in (("a", tarfile.REGTYPE), ("d/", tarfile.DIRTYPE), ("n" * 120, tarfile.SYMTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "target" * 20 if kind == tarfile.SYMTYPE else ""
            info.pax_headers = pax if kind == tarfile.REGTYPE else {}
            info.size = 1024 if kind == tarfile.REGTYPE else 0
            archive.addfile(info, io.BytesIO(b"2\n0\n10\n20\n5\n".ljust(1024, b"\0")))
    used = out.getvalue().rstrip(b"\0")
    return used + bytes(-len(used) % 512 + 1024)


def _old_sparse() -> bytes:
    """GNU's own sparse header: one row of 512 bytes at 512, real size 1024."""
    block = bytearray(tarfile.TarInfo("s").tobuf(tarfile.GNU_FORMAT))
    block[156:157], block[124:136] = b"S", b"%011o\0" % 512
    block[386:410], block[483:495] = b"%011o\0%011o\0" % (512, 512), b"%011o\0" % 1024
    return bytes(block) + bytes(512 * 3)


SEEDS = (
    _archive(tarfile.GNU_FORMAT),
    _archive(tarfile.PAX_FORMAT, path="long" * 60, mtime="1.5"),
    _archive(tarfile.PAX_FORMAT, **{"GNU.sparse.map": "0,10,20,5", "GNU.sparse.size": "30", "GNU.sparse.name": "s"}),
    _archive(
        tarfile.PAX_FORMAT,
        **{"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "30", "GNU.sparse.name": "s"},
    ),
    _old_sparse(),
)
