"""What a registry holds, in memory: shared by the simulator of the port and by the fault server."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from pipeline.errors import IntegrityError, StageError
from pipeline.model.digest import digest_of
from pipeline.model.oci import (
    OCI_CONFIG,
    OCI_INDEX,
    OCI_LAYER_GZIP,
    OCI_MANIFEST,
    Descriptor,
    Manifest,
)
from pipeline.model.record import canonical_json


@dataclass
class Repository:
    """Blobs by digest, manifests (raw, media type) by digest, and tags."""

    blobs: dict[str, bytes] = field(default_factory=dict)
    manifests: dict[str, Manifest] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)

    def find(self, selector: str) -> Manifest | None:
        return self.manifests.get(self.tags.get(selector, selector))

    def put(self, selector: str, manifest: Manifest) -> None:
        self.manifests[manifest.digest] = manifest
        if not selector.startswith("sha256:"):
            self.tags[selector] = manifest.digest

    def missing_blobs(self, manifest: Manifest) -> list[str]:
        if manifest.media_type == OCI_INDEX:
            return []
        return [d.digest for d in (manifest.view.config, *manifest.view.layers) if d.digest not in self.blobs]

    def referrers(self, digest: str) -> list[dict[str, Any]]:
        """What the referrers API lists, sorted by digest."""
        found = []
        for manifest in self.manifests.values():
            document = json.loads(manifest.raw)
            if (document.get("subject") or {}).get("digest") == digest:
                entry = manifest.descriptor.to_json()
                entry["artifactType"] = document.get("artifactType") or document["config"]["mediaType"]
                if "annotations" in document:
                    entry["annotations"] = document["annotations"]
                found.append(entry)
        return sorted(found, key=lambda entry: entry["digest"])


class Content:
    """All repositories of a registry."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._repositories: dict[str, Repository] = {}

    def repository(self, name: str) -> Repository:
        with self.lock:
            return self._repositories.setdefault(name, Repository())


class MemoryStore:
    """`BlobStore` without a disk."""

    def __init__(self, *blobs: bytes) -> None:
        self.blobs = {digest_of(data): data for data in blobs}

    def has(self, digest: str) -> bool:
        return digest in self.blobs

    def open(self, digest: str) -> BinaryIO:
        if digest not in self.blobs:
            raise StageError(f"blob {digest} is not here")
        return io.BytesIO(self.blobs[digest])

    def write(self, chunks: Iterator[bytes], expected: Descriptor) -> None:
        data = b"".join(chunks)
        if digest_of(data) != expected.digest or len(data) != expected.size:
            raise IntegrityError("other bytes than expected", where=expected.digest)
        self.blobs[expected.digest] = data

    def write_bytes(self, data: bytes) -> str:
        self.blobs[digest_of(data)] = data
        return digest_of(data)

    def path(self, digest: str) -> Path:
        raise StageError(f"blob {digest} has no file in memory")


def descriptor_of(data: bytes, media_type: str = OCI_LAYER_GZIP) -> Descriptor:
    return Descriptor(mediaType=media_type, digest=digest_of(data), size=len(data))


def make_image(*layers: bytes, config: bytes = b'{"architecture":"amd64","os":"linux"}', **more: Any) -> Manifest:
    """A manifest over layers and a config; `more` are further fields of the document."""
    document = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": descriptor_of(config, OCI_CONFIG).to_json(),
        "layers": [descriptor_of(layer).to_json() for layer in layers],
        **more,
    }
    return Manifest(canonical_json(document), OCI_MANIFEST)


def make_index(*entries: Descriptor, **more: Any) -> Manifest:
    document = {
        "schemaVersion": 2,
        "mediaType": OCI_INDEX,
        "manifests": [entry.to_json() for entry in entries],
        **more,
    }
    return Manifest(canonical_json(document), OCI_INDEX)
