"""An image as `docker load` takes it, streamed out of a blob store: every blob as stored, hashed on its way.

The archive is an OCI image layout with the manifest.json of `docker save` beside it, so that engines with either kind
of image store keep the exact bytes. Both indexes come last: an archive that breaks off loads nothing.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Iterator
from typing import Any

from pipeline.errors import IntegrityError
from pipeline.model.digest import hex_of
from pipeline.model.oci import OCI_INDEX, Descriptor, Manifest
from pipeline.ports import BlobStore

_CHUNK_BYTES = 1 << 20


def stream_archive(store: BlobStore, manifest: Manifest, name: str) -> Iterator[bytes]:
    """Chunks of a tar; IntegrityError when a blob of the store is not what the manifest says."""
    blobs = {blob.digest: blob for blob in (manifest.view.config, *manifest.view.layers)}
    for blob in blobs.values():
        yield _header(_blob_path(blob.digest), blob.size)
        yield from _checked_blob(store, blob)
        yield _padding(blob.size)
    yield from _member(_blob_path(manifest.digest), manifest.raw)
    yield from _member("oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
    yield from _member("index.json", json.dumps(_index(manifest, name)).encode())
    yield from _member("manifest.json", json.dumps(_docker_index(manifest, name)).encode())
    yield bytes(2 * tarfile.BLOCKSIZE)


def _index(manifest: Manifest, name: str) -> dict[str, Any]:
    named = {**manifest.descriptor.to_json(), "annotations": {"io.containerd.image.name": name}}
    return {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [named]}


def _docker_index(manifest: Manifest, name: str) -> list[dict[str, Any]]:
    layers = [_blob_path(layer.digest) for layer in manifest.view.layers]
    return [{"Config": _blob_path(manifest.view.config.digest), "RepoTags": [name], "Layers": layers}]


def _blob_path(digest: str) -> str:
    return f"blobs/sha256/{hex_of(digest)}"


def _checked_blob(store: BlobStore, blob: Descriptor) -> Iterator[bytes]:
    hasher, size = hashlib.sha256(), 0
    with store.open(blob.digest) as file:
        while chunk := file.read(_CHUNK_BYTES):
            hasher.update(chunk)
            size += len(chunk)
            if size <= blob.size:
                yield chunk
    observed = "sha256:" + hasher.hexdigest()
    if size != blob.size or observed != blob.digest:
        raise IntegrityError(
            f"a stored blob is {observed}, {size} bytes; expected {blob.digest}, {blob.size} bytes",
            where=blob.digest,
            remedy="remove that blob and run the stage that wrote it again",
        )


def _member(path: str, data: bytes) -> Iterator[bytes]:
    yield _header(path, len(data)) + data + _padding(len(data))


def _header(path: str, size: int) -> bytes:
    info = tarfile.TarInfo(path)
    info.size, info.mode = size, 0o644
    return info.tobuf(tarfile.PAX_FORMAT)


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)
