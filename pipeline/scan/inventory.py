"""What a layer says of the file system: entries for the merged root, and the blob id of every content.

Packed into one text for the cached record: zlib over rows, base64.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.errors import StageError

_ROW = struct.Struct("<BHIIIIB")


@dataclass(frozen=True)
class Seen:
    """One path. `kind` is as in tar.Member, and `content` for a file inside an archive, which is no entry."""

    path: bytes
    kind: str
    mode: int = 0
    uid: int = 0
    gid: int = 0
    link: bytes = b""
    has_acl: bool = False
    blob: bytes = b""


_KINDS = ("content", "file", "1", "2", "3", "4", "5", "6", "other")


class Inventory:
    """Append rows while a layer streams by; the rows are packed at once, since layers may have millions."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(1)
        self._packed = bytearray()
        self._rows = bytearray()

    def add(self, seen: Seen) -> None:
        """Append one row."""
        kind = _KINDS.index(seen.kind) if seen.kind in _KINDS else len(_KINDS) - 1
        flags = seen.has_acl << 15 | seen.mode
        self._rows += _ROW.pack(
            kind, flags, seen.uid & 0xFFFFFFFF, seen.gid & 0xFFFFFFFF, len(seen.path), len(seen.link), len(seen.blob)
        )
        self._rows += seen.path + seen.link + seen.blob
        if len(self._rows) > 1 << 20:
            self._packed += self._deflate.compress(self._rows)
            self._rows.clear()

    def to_text(self) -> str:
        """The whole table; call once."""
        self._packed += self._deflate.compress(self._rows) + self._deflate.flush()
        return base64.b64encode(self._packed).decode()


def load_inventory(text: str, where: str) -> Iterator[Seen]:
    """The rows that `Inventory.to_text` wrote; StageError when it is anything else."""
    try:
        raw = zlib.decompress(base64.b64decode(text, validate=True))
        at, size = 0, _ROW.size
        while at < len(raw):
            kind, flags, uid, gid, path_bytes, link_bytes, blob_bytes = _ROW.unpack_from(raw, at)
            link_at = at + size + path_bytes
            blob_at = link_at + link_bytes
            path, link, blob = raw[at + size : link_at], raw[link_at:blob_at], raw[blob_at : blob_at + blob_bytes]
            yield Seen(path, _KINDS[kind], flags & 0o7777, uid, gid, link, bool(flags >> 15), blob)
            at = blob_at + blob_bytes
    except (ValueError, IndexError, struct.error, zlib.error) as error:
        raise StageError("damaged inventory in a layer's scan", where=where, remedy="remove the cached scan") from error
