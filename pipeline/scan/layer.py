"""One layer, once: every entry examined by content, archives opened, git stores read; nothing is ever executed.

The result does not depend on the base commit, so it is cached by layer digest and `Rules.layer_digest`.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from pipeline.errors import HostileInputError
from pipeline.scan import archives, gitfiles, tar
from pipeline.scan.buffer import Buffer, Spool, digest_of_pieces, pieces_of
from pipeline.scan.graph import Graph, Sighting, Strength, paused_collection
from pipeline.scan.inventory import Inventory, Seen
from pipeline.scan.limits import Budget, Limits
from pipeline.scan.objects import GitObject, Kind, hasher, is_loose, make_object, split_loose
from pipeline.scan.pack import read_pack
from pipeline.scan.record import LayerLeak, LayerScan, LeakKind
from pipeline.scan.rules import SCANNER, Rules
from pipeline.scan.sparse import expand
from pipeline.scan.stream import LayerStream, Reader, ahead

LAYER_TYPES = (
    "layer.v1.tar",
    "layer.nondistributable.v1.tar",
    "image.rootfs.diff.tar",
    "image.rootfs.foreign.diff.tar",
)
_TEXT_BYTES = 64 << 20
_ACL_KEYS = (b"SCHILY.acl", b"SCHILY.xattr.system.posix_acl")


def scan_layer(stream: BinaryIO, media_type: str, rules: Rules, limits: Limits = Limits()) -> LayerScan:  # noqa: B008
    """Scan a layer blob (gzip, zstd or plain tar) in one pass. HostileInputError when it is no layer or damaged."""
    if not any(known in media_type for known in LAYER_TYPES):
        raise HostileInputError(f"not a layer: {media_type}")
    source = LayerStream(stream, limits.layer_bytes)
    scanner = _LayerScanner(rules, limits)
    chunks = ahead(source.chunks())
    try:
        scanner.read(Reader(chunks))
    finally:
        chunks.close()  # type: ignore[attr-defined]
    return scanner.result(source)


class _LayerScanner:
    def __init__(self, rules: Rules, limits: Limits) -> None:
        self._rules, self._limits = rules, limits
        self._budget = Budget(limits)
        self._inventory, self._graph = Inventory(), Graph()
        self._leaks: list[LayerLeak] = []
        self._entries = self._archives = 0

    def read(self, reader: Reader) -> None:
        """Walk the tar to the end of the stream."""
        for member in tar.walk(reader, self._limits):
            self._entries += 1
            blob = b""
            if self._rules.path_pattern:
                self._check_path(member.path)
            if member.kind == "file":
                blob = self._read_file(reader, member)
            has_acl = any(key.startswith(_ACL_KEYS) for key in member.pax)
            self._inventory.add(
                Seen(member.path, member.kind, member.mode, member.uid, member.gid, member.link, has_acl, blob)
            )
        if hidden := tar.trailing(reader):
            self._leak(b"", "unreadable", f"{hidden} bytes after the end of the layer's tar")

    def result(self, source: LayerStream) -> LayerScan:
        """The record, once the stream is read to its end."""
        return LayerScan(
            layer=source.digest, diff_id=source.diff_id, compressed_bytes=source.packed_bytes,
            unpacked_bytes=source.plain_bytes, entries=self._entries, archives=self._archives, leaks=tuple(self._leaks),
            inventory=self._inventory.to_text(), graph=self._graph.to_text() if self._graph.sightings else "",
            scanner=SCANNER, rules=self._rules.layer_digest,
        )  # fmt: skip

    def _read_file(self, reader: Reader, member: tar.Member) -> bytes:
        if member.size <= self._limits.memory_bytes and not member.sparse:
            return self._examine(member.path, reader.take(member.size), 0)
        with Spool() as spool:
            for piece in self._content(reader, member):
                spool.write(piece)
            return self._examine(member.path, spool.buffer(), 0)

    def _content(self, reader: Reader, member: tar.Member) -> Iterator[bytes]:
        if not member.sparse:
            yield from reader.pieces(member.size)
            return
        try:
            yield from expand(member, reader)
        except HostileInputError as error:
            self._leak(member.path, "unreadable", error.what)

    def _examine(self, path: bytes, data: Buffer, depth: int) -> bytes:
        """Everything that content can be; its blob id."""
        for match in self._rules.matcher.match(data):
            self._leak(path, match.kind, match.how, match.label)
        try:
            self._git_file(path, data)
            self._names(path, data)
            self._open_archive(path, data, depth)
        except HostileInputError as error:
            self._leak(path, "unreadable", error.what)
        except RecursionError:
            self._leak(path, "unreadable", "nested deeper than the interpreter goes")
        state = hasher("blob", len(data), self._rules.blob_format)
        if isinstance(data, bytes):
            state.update(data)
            blob: bytes = state.digest()
            return blob
        return digest_of_pieces(state, data)

    def _git_file(self, path: bytes, data: Buffer) -> None:
        head = data[:16]
        if head.startswith(b"PACK\0\0\0"):
            self._pack(path, data, "pack")
        elif head.startswith((b"# v2 git bundle\n", b"# v3 git bundle\n")):
            self._bundle(path, data)
        elif head.startswith((b"\xfftOc", b"MIDX", b"CGPH")):
            ids = gitfiles.pack_index_ids(data) if head.startswith(b"\xff") else gitfiles.chunked_ids(data)
            self._sight(path, "pack index" if head.startswith((b"\xff", b"MIDX")) else "commit graph", "names", ids)
        elif head.startswith(b"DIRC\0\0\0"):
            self._sight(path, "index", "names", gitfiles.index_ids(data[:]))
        elif head.startswith(b"REFT") and len(data) > 24:
            raise HostileInputError("refs in the reftable format, which is not read")
        elif len(head) > 1 and head[0] & 0x8F == 8 and int.from_bytes(head[:2], "big") % 31 == 0:
            self._loose(path, data)  # RFC 1950: deflate, any window size
        elif isinstance(data, bytes) and (at := _pack_inside(data)) > 0:
            with contextlib.suppress(HostileInputError):  # four letters by chance, unless its checksum is right
                self._pack(path, data[at:], "pack behind other data")

    def _names(self, path: bytes, data: Buffer) -> None:
        if len(data) > _TEXT_BYTES:
            return
        text = data if isinstance(data, bytes) else b""
        named = gitfiles.named_ids(path, text or data[:])
        for how, one_ids in named:
            self._sight(path, how, "names", one_ids)
        if named:
            return
        if ids := gitfiles.patch_ids(path, text):
            self._sight(path, "patch", "names", [b"~" + one for one in ids])

    def _pack(self, path: bytes, data: Buffer, how: str) -> None:
        ids: list[bytes] = []
        try:
            with paused_collection():
                for packed in read_pack(data, self._limits):
                    self._graph.add(packed.object)
                    if len(self._graph.objects) > self._limits.objects:
                        raise HostileInputError(f"more than {self._limits.objects} git objects in one layer")
                    ids.append(packed.object.id)
        finally:
            self._sight(path, how, "holds", ids)

    def _bundle(self, path: bytes, data: Buffer) -> None:
        start = gitfiles.bundle_pack(data)
        named = gitfiles.hex_ids(data[:start])
        self._sight(path, "bundle", "names", named)
        with Spool() as spool:
            for piece in pieces_of(data, start):
                spool.write(piece)
            self._pack(path, spool.buffer(), "bundle")

    def _loose(self, path: bytes, data: Buffer) -> None:
        try:
            head = zlib.decompressobj().decompress(data[:256], 64)
        except zlib.error:
            return
        if not is_loose(head):
            return
        made = read_loose(data, _loose_is_sha256(path), self._limits)
        self._graph.add(made)
        self._sight(path, "loose object", "holds", [made.id])

    def _open_archive(self, path: bytes, data: Buffer, depth: int) -> None:
        kind = archives.kind_of(data)
        if kind is None:
            return
        if depth >= self._limits.archive_depth:
            raise HostileInputError(f"archives nested deeper than {self._limits.archive_depth}")
        self._archives += 1
        for inner in archives.members(kind, data, self._budget):
            inside = path + tar.INSIDE + inner.name
            if self._rules.path_pattern:
                self._check_path(inner.name)
            deeper = depth + 1 if inner.name else depth
            blob = self._examine(inside, inner.data, deeper)
            self._inventory.add(Seen(inside, "content", blob=blob))

    def _check_path(self, path: bytes) -> None:
        pattern = self._rules.path_pattern
        if pattern is not None and pattern.match(path.decode("utf-8", "surrogateescape")):
            self._leak(path, "fixture", "path rule")

    def _sight(self, path: bytes, how: str, strength: Strength, ids: list[bytes]) -> None:
        if ids or how.startswith(gitfiles.SYMBOLIC):
            self._graph.sightings.append(Sighting(path, gitfiles.store_of(path), how, strength, ids))

    def _leak(self, path: bytes, kind: LeakKind, how: str, label: str = "") -> None:
        self._leaks.append(LayerLeak(path=tar.display(path), kind=kind, how=how, label=label))


def _pack_inside(data: bytes) -> int:
    zero = data.find(b"\0")  # many times faster to look for, and text has none
    return data.find(b"PACK\0\0\0\2", max(0, zero - 4)) if zero >= 0 else -1


def read_loose(data: Buffer, sha256: bool, limits: Limits) -> GitObject:
    """A loose object; blobs of any size are hashed in pieces. HostileInputError when it is damaged."""
    pieces = _inflate(data)
    first = next(pieces, b"")
    kind, size, start = split_loose(first)
    form = "sha256" if sha256 else "sha1"
    if kind == "blob":
        return _large_blob(first[start:], pieces, size, "sha256" if sha256 else "sha1")
    if size > limits.delta_bytes:
        raise HostileInputError(f"a git {kind} of {size} bytes")
    content = first[start:] + b"".join(pieces)
    if len(content) != size:
        raise HostileInputError("a loose git object of another size than it says")
    return make_object(kind, content, "sha256" if form == "sha256" else "sha1")


def _large_blob(first: bytes, pieces: Iterator[bytes], size: int, form: str) -> GitObject:
    kind: Kind = "blob"
    state = hasher(kind, size, "sha256" if form == "sha256" else "sha1")
    state.update(first)
    done = len(first)
    for piece in pieces:
        state.update(piece)
        done += len(piece)
        if done > size:
            break
    if done != size:
        raise HostileInputError("a loose git object of another size than it says")
    return GitObject(state.digest(), kind, size)


def _inflate(data: Buffer) -> Iterator[bytes]:
    stream = zlib.decompressobj()
    try:
        for piece in pieces_of(data):
            while piece and not stream.eof:
                yield stream.decompress(piece, 1 << 20)
                piece = stream.unconsumed_tail
    except zlib.error as error:
        raise HostileInputError(f"damaged loose git object: {error}") from error
    if not stream.eof or stream.unused_data:
        raise HostileInputError("a loose git object that is truncated or has bytes after its end")


def _loose_is_sha256(path: bytes) -> bool:
    return len(path.rpartition(b"/")[2]) == 62
