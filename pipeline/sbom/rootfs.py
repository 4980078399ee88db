"""The merged root of an image, as far as somebody wants it: wanted paths, content, and the layer that brought each.

Layers are streamed once, lowest first, and only wanted files and symbolic links are remembered. Whiteouts and opaque
directories as in https://github.com/opencontainers/image-spec/blob/main/layer.md: they hide what lower layers hold,
never what their own layer holds, whatever the order of entries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from pipeline.errors import HostileInputError, IntegrityError
from pipeline.model.oci import Descriptor, ImageConfig, Manifest
from pipeline.ports import BlobStore
from pipeline.sbom.inflate import open_layer
from pipeline.sbom.tar import LayerStream, TarEntry, TarLimits, normal_path, walk

Want = Literal["content", "digest"]
Wanted = Callable[[str], Want | None]
_WHITEOUT, _OPAQUE, _RESERVED = ".wh.", ".wh..wh..opq", ".wh..wh."
_MAX_HOPS = 40


@dataclass(frozen=True)
class RootLimits:
    """Of one image: what is remembered, in bytes and counts."""

    tar: TarLimits = field(default_factory=TarLimits)
    file_bytes: int = 64 << 20
    kept_bytes: int = 384 << 20
    kept_entries: int = 1_000_000


@dataclass(frozen=True)
class FoundFile:
    """A wanted file: the layer (0 is the lowest) that brought it, SHA-256 in hex, and content when that was wanted."""

    path: str
    layer: int
    sha256: str
    data: bytes = field(repr=False)


@dataclass(frozen=True)
class RootView:
    """The merged root: wanted files by path, every symbolic link, and the layers' digests, lowest first."""

    files: dict[str, FoundFile]
    links: dict[str, str]
    layers: tuple[str, ...]

    def find(self, path: str) -> FoundFile | None:
        """The wanted file that `path` leads to inside the root; links never lead outside, a cycle leads nowhere."""
        real = self._real(path)
        return None if real is None else self.files.get(real)

    def _real(self, path: str) -> str | None:
        todo, hops = path.split("/")[::-1], 0
        done: list[str] = []
        while todo:
            part = todo.pop()
            if part in ("", "."):
                continue
            if part == "..":
                done = done[:-1]
                continue
            target = self.links.get("/".join([*done, part]))
            if target is None:
                done.append(part)
                continue
            hops += 1
            if hops > _MAX_HOPS:
                return None
            done = [] if target.startswith("/") else done
            todo += target.split("/")[::-1]
        return "/".join(done)


def read_root(
    store: BlobStore, manifest: Manifest, config: ImageConfig, wanted: Wanted, limits: RootLimits | None = None
) -> RootView:
    """Stream every layer of an image and keep what `wanted` asks for.

    IntegrityError when a layer is not what the config's diff_id says; HostileInputError when a limit is exceeded.
    """
    layers, diff_ids = manifest.view.layers, config.view.rootfs.diff_ids
    if len(layers) != len(diff_ids):
        raise IntegrityError(f"{len(layers)} layers but {len(diff_ids)} diff_ids", where=manifest.digest)
    merger = _Merger(wanted, limits or RootLimits())
    for index, (layer, diff_id) in enumerate(zip(layers, diff_ids, strict=True)):
        merger.add_layer(store, layer, diff_id, index)
    return RootView(merger.files, merger.links, tuple(layer.digest for layer in layers))


class _Merger:
    def __init__(self, wanted: Wanted, limits: RootLimits) -> None:
        self._wanted, self._limits = wanted, limits
        self.files: dict[str, FoundFile] = {}
        self.links: dict[str, str] = {}

    def add_layer(self, store: BlobStore, layer: Descriptor, diff_id: str, index: int) -> None:
        overlay = _Overlay({*self.files, *self.links})
        files: dict[str, FoundFile] = {}
        links: dict[str, str] = {}
        twins: dict[str, str] = {}
        for entry, stream in _entries(store, layer, diff_id, self._limits.tar):
            if overlay.hide(entry):
                continue
            files.pop(entry.path, None)
            links.pop(entry.path, None)
            twins.pop(entry.path, None)
            want = self._wanted(entry.path)
            if entry.kind == "symlink":
                links[entry.path] = entry.target
            elif entry.kind == "hardlink" and want:
                twins[entry.path] = normal_path(entry.target, self._limits.tar, layer.digest)
            elif entry.kind == "file" and want:
                files[entry.path] = self._take(entry, stream, want, index, layer.digest)
            self._check_kept(files, links, layer.digest)
        if twins:
            self._add_twins(store, layer, diff_id, index, twins, files)
        self._merge(overlay, files, links)

    def _take(self, entry: TarEntry, stream: LayerStream, want: Want, index: int, where: str) -> FoundFile:
        if entry.sparse or (want == "content" and entry.size > self._limits.file_bytes):
            raise HostileInputError(
                f"package metadata that is sparse or of {entry.size} bytes: {entry.path!r}", where=where
            )
        digest, kept = hashlib.sha256(), bytearray()
        for chunk in stream.chunks(entry.size):
            digest.update(chunk)
            if want == "content":
                kept += chunk
        return FoundFile(entry.path, index, digest.hexdigest(), bytes(kept))

    def _add_twins(
        self,
        store: BlobStore,
        layer: Descriptor,
        diff_id: str,
        index: int,
        twins: dict[str, str],
        files: dict[str, FoundFile],
    ) -> None:
        """A second pass for hard links: the content is under another name of the same layer."""
        names: dict[str, list[str]] = {}
        for path, target in twins.items():
            names.setdefault(target, []).append(path)
        for entry, stream in _entries(store, layer, diff_id, self._limits.tar):
            if entry.kind == "file" and entry.path in names:
                found = self._take(entry, stream, "content", index, layer.digest)
                for path in names[entry.path]:
                    files[path] = FoundFile(path, index, found.sha256, found.data)
        self._check_kept(files, {}, layer.digest)

    def _check_kept(self, files: dict[str, FoundFile], links: dict[str, str], where: str) -> None:
        if len(self.files) + len(self.links) + len(files) + len(links) > self._limits.kept_entries:
            raise HostileInputError("more package metadata and links than an image has", where=where)

    def _merge(self, overlay: _Overlay, files: dict[str, FoundFile], links: dict[str, str]) -> None:
        for path in overlay.hidden():
            self.files.pop(path, None)
            self.links.pop(path, None)
        self.files.update(files)
        self.links.update(links)
        kept_bytes = sum(len(found.data) for found in self.files.values())
        if kept_bytes > self._limits.kept_bytes:
            raise HostileInputError(f"package metadata of {kept_bytes} bytes", where="merged root")


class _Overlay:
    """What a layer hides of the remembered paths below it."""

    def __init__(self, below: set[str]) -> None:
        self._below = below
        self._folders = {parent for path in below for parent in _parents(path)}
        self._gone: set[str] = set()
        self._gone_trees: set[str] = set()

    def hide(self, entry: TarEntry) -> bool:
        """Note what the entry hides; True when the entry is a whiteout and nothing else."""
        parent, _, name = entry.path.rpartition("/")
        if name.startswith(_WHITEOUT):
            if name == _OPAQUE:
                self._gone_trees.add(parent)
            elif not name.startswith(_RESERVED):
                hidden = f"{parent}/{name[len(_WHITEOUT) :]}".lstrip("/")
                self._gone.add(hidden)
                self._gone_trees.add(hidden)
            return True
        if entry.path in self._below:
            self._gone.add(entry.path)
        if entry.kind != "dir" and entry.path in self._folders:
            self._gone_trees.add(entry.path)
        self._gone.update(folder for folder in _parents(entry.path) if folder in self._below)
        return False

    def hidden(self) -> Iterator[str]:
        """Remembered paths of lower layers that are not in the merged root any more."""
        for path in self._below:
            if path in self._gone or "" in self._gone_trees or any(p in self._gone_trees for p in _parents(path)):
                yield path


def _parents(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _entries(
    store: BlobStore, layer: Descriptor, diff_id: str, limits: TarLimits
) -> Iterator[tuple[TarEntry, LayerStream]]:
    hasher = hashlib.sha256()
    with store.open(layer.digest) as blob, open_layer(blob, layer) as plain:
        stream = LayerStream(plain, hasher, limits.unpacked_bytes, layer.digest)
        for entry in walk(stream, limits, layer.digest):
            yield entry, stream
    if hasher.hexdigest() != diff_id.partition(":")[2]:
        raise IntegrityError(f"a layer is not what the config's diff_id {diff_id} says", where=layer.digest)
