"""Deterministic layers: entries in, one gzip-compressed tar out, the same bytes on every machine.

Sorted names, numeric owners, one clamped time, PAX format only where a name or size needs it, and a compressor whose
output does not depend on the processor (libdeflate, see docs/adr/0003). Content longer than MEMBER_BYTES becomes
several gzip members (RFC 1952, section 2.2), so memory stays bounded.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import BinaryIO, Literal

import deflate

from pipeline.errors import PipelineError

MEMBER_BYTES = 32 << 20
LEVEL = 9
COMPRESSOR = f"libdeflate-{LEVEL}"

EntryKind = Literal["file", "dir", "symlink"]
_TYPES = {"file": tarfile.REGTYPE, "dir": tarfile.DIRTYPE, "symlink": tarfile.SYMTYPE}


@dataclass(frozen=True)
class Entry:
    """One path of a layer: `path` is relative and normal (no leading slash, no dot parts), modes are octal bits."""

    path: str
    kind: EntryKind = "file"
    data: bytes = field(default=b"", repr=False)
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    target: str = ""


@dataclass(frozen=True)
class LayerFacts:
    """What a manifest and a config need to know of a layer; sizes in bytes."""

    digest: str
    diff_id: str
    size: int
    unpacked_bytes: int
    entries: int


class GzipSink:
    """A writable that hashes plain bytes, compresses them in members and hashes the result. Call `close` once."""

    def __init__(self, out: BinaryIO, level: int = LEVEL) -> None:
        self._out, self._level = out, level
        self._plain, self._packed = hashlib.sha256(), hashlib.sha256()
        self._buffer = bytearray()
        self.plain_bytes = self.packed_bytes = 0

    def write(self, data: bytes) -> int:
        """Take plain bytes."""
        self._plain.update(data)
        self.plain_bytes += len(data)
        self._buffer += data
        while len(self._buffer) >= MEMBER_BYTES:
            self._flush(MEMBER_BYTES)
        return len(data)

    def close(self) -> None:
        """Write the last member; an empty stream is one empty member."""
        if self._buffer or not self.packed_bytes:
            self._flush(len(self._buffer))

    def facts(self, entries: int) -> LayerFacts:
        """Digests and sizes, after close."""
        digest, diff_id = "sha256:" + self._packed.hexdigest(), "sha256:" + self._plain.hexdigest()
        return LayerFacts(digest, diff_id, self.packed_bytes, self.plain_bytes, entries)

    def _flush(self, count: int) -> None:
        member = bytes(deflate.gzip_compress(bytes(self._buffer[:count]), self._level))
        del self._buffer[:count]
        self._packed.update(member)
        self.packed_bytes += len(member)
        self._out.write(member)


def write_layer(entries: Iterable[Entry], out: BinaryIO, epoch_s: int) -> LayerFacts:
    """Write entries (any order; parents are added) as one layer to `out`; every time is `epoch_s`."""
    ordered = _with_parents(entries)
    sink = GzipSink(out)
    with tarfile.open(fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT, bufsize=1 << 20) as tar:  # type: ignore[call-overload]
        for entry in ordered:
            info = _tar_info(entry, epoch_s)
            tar.addfile(info, io.BytesIO(entry.data) if entry.kind == "file" else None)
    sink.close()
    return sink.facts(len(ordered))


def make_layer(entries: Iterable[Entry], epoch_s: int) -> tuple[bytes, LayerFacts]:
    """`write_layer` into memory, for layers that are known to be small."""
    out = io.BytesIO()
    facts = write_layer(entries, out, epoch_s)
    return out.getvalue(), facts


def make_tar(entries: Iterable[Entry], epoch_s: int) -> bytes:
    """The same deterministic tar, uncompressed and in memory: for an archive that is a file of a layer."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for entry in _with_parents(entries):
            tar.addfile(_tar_info(entry, epoch_s), io.BytesIO(entry.data) if entry.kind == "file" else None)
    return out.getvalue()


def _with_parents(entries: Iterable[Entry]) -> list[Entry]:
    by_path: dict[str, Entry] = {}
    for entry in entries:
        if entry.path in by_path:
            raise PipelineError("two entries of a layer have one path", where=entry.path)
        if entry.path.startswith("/") or {"", ".", ".."} & set(entry.path.split("/")):
            raise PipelineError("a layer path must be relative and normal", where=entry.path)
        by_path[entry.path] = entry
    for path in list(by_path):
        while "/" in path:
            path = path.rpartition("/")[0]
            by_path.setdefault(path, Entry(path, "dir", mode=0o755))
    return [by_path[path] for path in sorted(by_path, key=lambda path: path.split("/"))]


def _tar_info(entry: Entry, epoch_s: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(entry.path)
    info.type = _TYPES[entry.kind]
    info.mode = 0o777 if entry.kind == "symlink" else entry.mode
    info.uid, info.gid, info.mtime = entry.uid, entry.gid, epoch_s
    info.linkname = entry.target
    info.size = len(entry.data) if entry.kind == "file" else 0
    return info
