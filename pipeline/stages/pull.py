"""The anonymous pull: every blob of an image into an empty store, hashed and counted while it streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import IntegrityError
from pipeline.files import remove_tree
from pipeline.layout import Layout
from pipeline.model.evidence import PulledBlob
from pipeline.model.oci import Descriptor, ImageConfig, Manifest
from pipeline.model.reference import Reference
from pipeline.ports import PullRegistry, Reporter


@dataclass(frozen=True)
class PulledImage:
    """An image out of a registry, complete and verified, and what came over the wire for it."""

    manifest: Manifest
    config: ImageConfig
    layout: Layout
    blobs: tuple[PulledBlob, ...]


def pull_image(pinned: Reference, folder: Path, registry: PullRegistry, reporter: Reporter) -> PulledImage:
    """Download manifest, config and every layer of a digest into `folder`, which is emptied first.

    IntegrityError when a blob is not its digest, or when fewer bytes arrived than the manifest promises.
    """
    remove_tree(folder)
    layout = Layout(folder)
    manifest = registry.fetch_manifest(pinned)
    blobs = (manifest.view.config, *manifest.view.layers)
    with reporter.step(f"pull {pinned}", sum(blob.size for blob in blobs)) as advance:
        pulled = tuple(_pull_blob(pinned, blob, layout, registry, advance) for blob in _distinct(blobs))
    layout.write_bytes(manifest.raw)
    layout.write_index([manifest.descriptor])
    with layout.open(manifest.view.config.digest) as blob:
        config = ImageConfig(blob.read())
    _check_config(manifest, config, pinned)
    return PulledImage(manifest, config, layout, pulled)


def _pull_blob(
    pinned: Reference, blob: Descriptor, layout: Layout, registry: PullRegistry, advance: Callable[[int], None]
) -> PulledBlob:
    before = registry.received_bytes
    layout.write(_counted(registry.fetch_blob(pinned, blob), advance), blob)
    received = registry.received_bytes - before
    if received < blob.size:
        raise IntegrityError(
            f"{received} bytes came over the wire for a blob of {blob.size}",
            where=f"{pinned}, {blob.digest}",
            remedy="something served it from elsewhere than the registry; verify again without a cache in between",
        )
    # a retried transfer may send more; what counts for evidence is that every byte of the blob came
    return PulledBlob(digest=blob.digest, size=blob.size, received_bytes=blob.size)


def _counted(chunks: Iterator[bytes], advance: Callable[[int], None]) -> Iterator[bytes]:
    for chunk in chunks:
        advance(len(chunk))
        yield chunk


def _distinct(blobs: tuple[Descriptor, ...]) -> list[Descriptor]:
    return list({blob.digest: blob for blob in blobs}.values())


def _check_config(manifest: Manifest, config: ImageConfig, pinned: Reference) -> None:
    if len(config.view.rootfs.diff_ids) != len(manifest.view.layers):
        raise IntegrityError(
            f"{len(manifest.view.layers)} layers and {len(config.view.rootfs.diff_ids)} diff_ids", where=str(pinned)
        )
