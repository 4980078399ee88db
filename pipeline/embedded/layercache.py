"""Built layers by the digest of everything that they are made from, so an unchanged part of an image costs nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from pipeline.derive import layer as layer_module
from pipeline.derive.layer import COMPRESSOR, Entry, write_layer
from pipeline.embedded.filecache import FileCache
from pipeline.errors import StageError
from pipeline.files import write_atomic
from pipeline.model.digest import Digest, hex_of
from pipeline.model.material import Material
from pipeline.model.oci import OCI_LAYER_GZIP, Descriptor
from pipeline.model.record import Record, canonical_json
from pipeline.model.stages import LayerRecord
from pipeline.ports import BlobStore

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Content:
    """What goes into a layer, what it was made from, and notes for a person."""

    entries: Iterable[Entry]
    materials: tuple[Material, ...]
    notes: tuple[str, ...] = ()


class SourceLayer(Record):
    """A layer made from sources: digests, sizes in bytes, materials and notes. `inputs` is the key it is cached by."""

    inputs: str
    name: str
    digest: Digest
    diff_id: Digest
    size: int
    unpacked_bytes: int
    materials: tuple[Material, ...]
    notes: tuple[str, ...]

    @property
    def layer(self) -> LayerRecord:
        """As a built image lists it."""
        return LayerRecord(
            name=self.name,
            origin="base",
            digest=self.digest,
            diff_id=self.diff_id,
            size=self.size,
            media_type=OCI_LAYER_GZIP,
        )


@dataclass(frozen=True)
class LayerCache:
    """Layers below `path`; `epoch_s` is the time of every file in them."""

    path: Path
    epoch_s: int

    def fetch(self, name: str, inputs: Any, make: Callable[[], Content], store: BlobStore) -> SourceLayer:
        """The layer of these inputs (a JSON value) in the store: from the cache, or made now."""
        key = hashlib.sha256(canonical_json([name, inputs, self.epoch_s, _code_digest()])).hexdigest()
        found = self._load(key) or self._make(key, name, make())
        if not store.has(found.digest):
            descriptor = Descriptor(mediaType=OCI_LAYER_GZIP, digest=found.digest, size=found.size)
            store.write(_chunks(self._blobs.file_path(hex_of(found.digest))), descriptor)
        return found

    def remove_leftovers(self) -> None:
        """Remove what killed runs left. Call it when no other run uses the cache."""
        self._blobs.remove_leftovers()

    @property
    def _blobs(self) -> FileCache:
        return FileCache(self.path / "blobs")

    def _load(self, key: str) -> SourceLayer | None:
        path = self.path / f"{key}.json"
        if not path.is_file():
            return None
        try:
            found = SourceLayer.load(path.read_bytes(), str(path))
        except StageError:
            # A record of another version, or damaged: the layer is made again.
            return None
        return found if found.inputs == key and self._blobs.has(hex_of(found.digest)) else None

    def _make(self, key: str, name: str, content: Content) -> SourceLayer:
        with self._blobs.scratch() as folder:
            part = Path(folder, name)
            with part.open("wb") as out:
                facts = write_layer(content.entries, out, self.epoch_s)
            self._blobs.add(part, hex_of(facts.digest))
        made = SourceLayer(
            inputs=key,
            name=name,
            digest=facts.digest,
            diff_id=facts.diff_id,
            size=facts.size,
            unpacked_bytes=facts.unpacked_bytes,
            materials=content.materials,
            notes=content.notes,
        )
        write_atomic(self.path / f"{key}.json", made.to_bytes())
        return made


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            yield chunk


def _code_digest() -> str:
    """Of the code that decides a layer's bytes, and of the compressor: a change in either makes layers anew."""
    sources = sorted([*Path(__file__).parent.glob("*.py"), Path(layer_module.__file__)])
    text = b"".join(path.read_bytes() for path in sources) + COMPRESSOR.encode() + metadata.version("deflate").encode()
    return hashlib.sha256(text).hexdigest()
