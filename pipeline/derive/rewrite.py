"""A layer without some of its paths. Everything else keeps its tar bytes: headers, order, owners, links, sparse maps.

A hard link whose target is dropped becomes the file itself; further links to the same file point to it. Nothing dropped
is nothing done: the caller keeps the layer that it has, and its digest.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO

from pipeline.derive.layer import GzipSink, LayerFacts
from pipeline.errors import HostileInputError, IntegrityError
from pipeline.scan import tar
from pipeline.scan.buffer import Spool, pieces_of
from pipeline.scan.limits import Limits
from pipeline.scan.stream import LayerStream, Reader

Drop = Callable[[bytes], bool]
_RECORD_BYTES = 10240  # POSIX: an archive ends at a whole record of 20 blocks


@dataclass(frozen=True)
class Rewritten:
    """A layer that was written, with the paths (as `tar.display` shows them) that it no longer has."""

    facts: LayerFacts
    dropped: tuple[str, ...]


@dataclass
class _Plan:
    """From a first walk: what goes, and which kept hard links need the content of a file that goes."""

    dropped: list[bytes] = field(default_factory=list)
    heirs: dict[bytes, list[bytes]] = field(default_factory=dict)
    diff_id: str = ""
    hidden_bytes: int = 0


def rewrite_layer(source: BinaryIO, drop: Drop, out: BinaryIO, limits: Limits = Limits()) -> Rewritten | None:  # noqa: B008
    """Write `source` (a seekable layer blob, any compression) to `out` as gzip, without the paths that `drop` names.

    None, with nothing written, when the layer has none of them and hides nothing after its end. HostileInputError for a
    damaged layer, IntegrityError when it changes between the two walks.
    """
    plan = _make_plan(source, drop, limits)
    if not plan.dropped and not plan.hidden_bytes:
        return None
    source.seek(0)
    stream = LayerStream(source, limits.layer_bytes)
    sink = GzipSink(out)
    entries = _copy(Reader(stream.chunks()), plan, drop, sink, limits)
    if stream.diff_id != plan.diff_id:
        raise IntegrityError(
            "the layer changed while it was rewritten", remedy="run it again with nothing else running"
        )
    sink.close()
    return Rewritten(sink.facts(entries), tuple(tar.display(path) for path in plan.dropped))


def drop_paths(paths: frozenset[bytes]) -> Drop:
    """A rule that drops these paths and everything below them."""

    def drops(path: bytes) -> bool:
        while path:
            if path in paths:
                return True
            path = path.rpartition(b"/")[0]
        return False

    return drops


def _make_plan(source: BinaryIO, drop: Drop, limits: Limits) -> _Plan:
    plan = _Plan()
    stream = LayerStream(source, limits.layer_bytes)
    reader = Reader(stream.chunks())
    gone: set[bytes] = set()
    for member in tar.walk(reader, limits):
        if drop(member.path):
            plan.dropped.append(member.path)
            gone.add(member.path)
        else:
            gone.discard(member.path)
            if member.kind == "1" and (target := tar.normal(member.link)) in gone:
                plan.heirs.setdefault(target, []).append(member.path)
    plan.hidden_bytes = tar.trailing(reader)
    plan.diff_id = stream.diff_id
    return plan


def _copy(reader: Reader, plan: _Plan, drop: Drop, sink: GzipSink, limits: Limits) -> int:
    entries = 0
    contents = _Contents()
    try:
        for member in tar.walk(reader, limits):
            if drop(member.path):
                sink.write(member.shared_header)
                if member.path in plan.heirs:
                    contents.keep(member, reader)
                continue
            entries += 1
            if member.kind == "1" and contents.has(tar.normal(member.link)):
                contents.write(member, sink)
                continue
            sink.write(member.header)
            for piece in reader.pieces(member.size + member.padding):
                sink.write(piece)
    finally:
        contents.close()
    for _ in reader.rest():
        pass  # what follows the end marker is read for the digest, and is not kept
    sink.write(bytes(2 * tar.BLOCK))
    sink.write(bytes(-sink.plain_bytes % _RECORD_BYTES))
    return entries


class _Contents:
    """Files that are dropped while a hard link to them stays."""

    def __init__(self) -> None:
        self._spools: dict[bytes, tuple[tar.Member, Spool]] = {}
        self._names: dict[bytes, bytes] = {}

    def keep(self, member: tar.Member, reader: Reader) -> None:
        """Set the content aside."""
        if member.kind == "1" or member.sparse:
            raise HostileInputError(
                "a kept hard link points to a dropped link or sparse file", where=tar.display(member.path)
            )
        spool = Spool()
        for piece in reader.pieces(member.size):
            spool.write(piece)
        self._spools[member.path] = (member, spool)

    def has(self, target: bytes) -> bool:
        """Whether a link to this target has lost it."""
        return target in self._spools

    def write(self, link: tar.Member, sink: GzipSink) -> None:
        """The first link becomes the file, the others link to the first."""
        target = tar.normal(link.link)
        member, spool = self._spools[target]
        info = tarfile.TarInfo(link.path.decode("utf-8", "surrogateescape"))
        info.mode, info.uid, info.gid = member.mode, member.uid, member.gid
        info.mtime = int(member.header[-tar.BLOCK :][136:148].partition(b"\0")[0].strip() or b"0", 8)
        info.pax_headers = {
            key.decode("utf-8", "surrogateescape"): value.decode("utf-8", "surrogateescape")
            for key, value in member.pax.items()
            if key not in (b"path", b"linkpath", b"size")
        }
        first = self._names.setdefault(target, link.path)
        if first != link.path:
            info.type, info.linkname = tarfile.LNKTYPE, first.decode("utf-8", "surrogateescape")
            sink.write(info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))
            return
        info.size = member.size
        sink.write(info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))
        for piece in pieces_of(spool.buffer()):
            sink.write(piece)
        sink.write(bytes(member.padding))

    def close(self) -> None:
        """Let the spools go."""
        for _, spool in self._spools.values():
            spool.__exit__()
