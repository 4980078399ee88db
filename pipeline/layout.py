"""An OCI image layout on disk: the blobs of one image, verified as they are written.

Specification: https://github.com/opencontainers/image-spec/blob/main/image-layout.md
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from pipeline.errors import IntegrityError, StageError
from pipeline.files import read_bytes_limited, write_atomic, write_atomic_chunks
from pipeline.model.digest import digest_of, hex_of, is_digest
from pipeline.model.oci import MAX_MANIFEST_BYTES, OCI_INDEX, Descriptor, IndexView, Manifest, load_index
from pipeline.model.record import canonical_json

_LAYOUT = b'{"imageLayoutVersion":"1.0.0"}'


class Layout:
    """`ports.BlobStore` over a folder with `oci-layout`, `index.json` and `blobs/sha256/`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def has(self, digest: str) -> bool:
        """Whether the blob is complete here. Blobs appear by rename, so one that exists is complete."""
        return self._blob_path(digest).is_file()

    def open(self, digest: str) -> BinaryIO:
        """The blob's compressed bytes; StageError when it is absent."""
        return self.path(digest).open("rb")

    def path(self, digest: str) -> Path:
        """The file of a blob that is here; StageError when it is absent."""
        path = self._blob_path(digest)
        if not path.is_file():
            raise StageError(
                f"blob {digest} is not here", where=str(self.folder), remedy="run the stage before this one"
            )
        return path

    def write(self, chunks: Iterator[bytes], expected: Descriptor) -> None:
        """Hash while writing; IntegrityError unless size and digest are as expected. Nothing stays after a failure."""
        write_atomic_chunks(self._blob_path(expected.digest), _checked(chunks, expected, str(self.folder)))

    def write_bytes(self, data: bytes) -> str:
        """Store small content; returns its digest."""
        digest = digest_of(data)
        if not self.has(digest):
            write_atomic(self._blob_path(digest), data)
        return digest

    def link_from(self, other: Layout, digest: str) -> None:
        """Make a blob of another layout exist here, sharing its bytes on disk where the file system can."""
        target = self._blob_path(digest)
        if target.is_file():
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            target.hardlink_to(other.path(digest))
        except OSError:  # another file system, or one without hard links
            with other.open(digest) as blob:
                write_atomic_chunks(target, iter(lambda: blob.read(1 << 20), b""))

    def write_index(self, manifests: Sequence[Descriptor]) -> None:
        """Say which manifests this layout is of. Written last: a layout without index.json is not complete."""
        index = {
            "schemaVersion": 2,
            "mediaType": OCI_INDEX,
            "manifests": [manifest.to_json() for manifest in manifests],
        }
        write_atomic(self.folder / "oci-layout", _LAYOUT)
        write_atomic(self.folder / "index.json", canonical_json(index))

    def load_index(self) -> IndexView:
        """What `write_index` wrote; StageError when the layout is not complete."""
        path = self.folder / "index.json"
        if not path.is_file():
            raise StageError("not a complete image layout", where=str(self.folder), remedy="run the build again")
        return load_index(read_bytes_limited(path, MAX_MANIFEST_BYTES), str(path))

    def load_manifest(self, descriptor: Descriptor) -> Manifest:
        """A manifest that the index names; IntegrityError when its bytes are not those of the descriptor's digest."""
        raw = read_bytes_limited(self.path(descriptor.digest), MAX_MANIFEST_BYTES)
        if digest_of(raw) != descriptor.digest:
            raise IntegrityError(
                f"the stored manifest is {digest_of(raw)}",
                where=f"{self.folder}, {descriptor.digest}",
                remedy="build again",
            )
        return Manifest(raw, descriptor.media_type)

    def _blob_path(self, digest: str) -> Path:
        if not is_digest(digest):
            raise IntegrityError(f"not a sha256 digest: {digest!r}", where=str(self.folder))
        return self.folder / "blobs" / "sha256" / hex_of(digest)


def _checked(chunks: Iterator[bytes], expected: Descriptor, where: str) -> Iterator[bytes]:
    """The same chunks; raises before the last byte could be taken for complete, and as soon as there are too many."""
    hasher, size = hashlib.sha256(), 0
    for chunk in chunks:
        size += len(chunk)
        if size > expected.size:
            raise IntegrityError(f"more than the promised {expected.size} bytes", where=f"{where}, {expected.digest}")
        hasher.update(chunk)
        yield chunk
    observed = "sha256:" + hasher.hexdigest()
    if size != expected.size or observed != expected.digest:
        raise IntegrityError(
            f"the bytes are {observed}, {size} bytes; expected {expected.digest}, {expected.size} bytes",
            where=where,
            remedy="fetch it again; if it happens again the source is damaged or has been tampered with",
        )
