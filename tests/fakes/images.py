"""Small images in memory: layers out of entries, a manifest, a config, and the store that holds them."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from pipeline.derive.layer import Entry, make_layer
from pipeline.errors import StageError
from pipeline.model.digest import digest_of
from pipeline.model.oci import OCI_CONFIG, OCI_LAYER_GZIP, OCI_MANIFEST, Descriptor, ImageConfig, Manifest

EPOCH_S = 1_791_763_200


class MemoryBlobs:
    """A `BlobStore` in memory; `path` has no meaning here."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    def has(self, digest: str) -> bool:
        return digest in self.blobs

    def open(self, digest: str) -> BinaryIO:
        if digest not in self.blobs:
            raise StageError("no such blob", where=digest)
        return io.BytesIO(self.blobs[digest])

    def write(self, chunks: Iterator[bytes], expected: Descriptor) -> None:
        assert self.write_bytes(b"".join(chunks)) == expected.digest

    def write_bytes(self, data: bytes) -> str:
        self.blobs[digest_of(data)] = data
        return digest_of(data)

    def path(self, digest: str) -> Path:
        raise StageError("blobs in memory have no path", where=digest)


@dataclass(frozen=True)
class FakeImage:
    """An image and the store with its blobs."""

    store: MemoryBlobs
    manifest: Manifest
    config: ImageConfig


def entry(path: str, text: str | bytes = "") -> Entry:
    """A file."""
    return Entry(path, data=text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text)


def make_image(*layers: Iterable[Entry], config: Mapping[str, Any] | None = None) -> FakeImage:
    """Layers, lowest first, written by the pipeline's own layer writer. `config` is merged into the image config."""
    blobs = []
    for entries in layers:
        data, facts = make_layer(entries, EPOCH_S)
        blobs.append((data, facts.diff_id, OCI_LAYER_GZIP))
    return make_raw_image(blobs, config)


def make_raw_image(blobs: Iterable[tuple[bytes, str, str]], config: Mapping[str, Any] | None = None) -> FakeImage:
    """The same from (blob, diff_id, media type): for layers that no honest tool writes."""
    store, layers, diff_ids = MemoryBlobs(), [], []
    for data, diff_id, media_type in blobs:
        layers.append({"mediaType": media_type, "digest": store.write_bytes(data), "size": len(data)})
        diff_ids.append(diff_id)
    document = {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": diff_ids}}
    raw_config = json.dumps({**document, **(config or {})}).encode()
    described = {"mediaType": OCI_CONFIG, "digest": store.write_bytes(raw_config), "size": len(raw_config)}
    manifest = {"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": described, "layers": layers}
    return FakeImage(store, Manifest(json.dumps(manifest).encode(), OCI_MANIFEST), ImageConfig(raw_config))


def plain_digest(tar: bytes) -> str:
    """The diff_id of a plain tar."""
    return "sha256:" + hashlib.sha256(tar).hexdigest()
