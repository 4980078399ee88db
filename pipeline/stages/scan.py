"""Scan any image, ours or not: every layer once, a verdict, a table. Needs no credentials and runs nothing.

1. manifest and config; 2. each layer, from the cache when its digest and the rules are known; 3. the verdict.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, Protocol, cast

from pipeline.errors import IntegrityError
from pipeline.model.oci import Descriptor, ImageConfig, Manifest
from pipeline.model.reference import Reference
from pipeline.ports import BlobStore, PullRegistry
from pipeline.scan.image import judge_image
from pipeline.scan.layer import scan_layer
from pipeline.scan.limits import Limits
from pipeline.scan.record import CLASSES, ImageScan, LayerProof, LayerScan, Leak
from pipeline.scan.rules import Rules

OpenBlob = Callable[[Descriptor], BinaryIO]


class ScanCache(Protocol):
    """Layer scans by layer digest and rules digest; optional."""

    def get(self, layer: str, rules: str) -> bytes | None:
        """The bytes of a LayerScan, or None."""

    def put(self, layer: str, rules: str, scan: bytes) -> None:
        """Remember one, atomically."""


def scan_store(
    store: BlobStore,
    manifest: Manifest,
    rules: Rules,
    cache: ScanCache | None = None,
    limits: Limits = Limits(),  # noqa: B008
) -> tuple[ImageScan, tuple[LayerScan, ...]]:
    """Scan an image of a layout on disk; the verdict and its layers, bottom first."""
    return scan_image(manifest, lambda blob: store.open(blob.digest), rules, cache, limits)


def scan_registry(
    registry: PullRegistry,
    reference: Reference,
    rules: Rules,
    cache: ScanCache | None = None,
    limits: Limits = Limits(),  # noqa: B008
) -> tuple[ImageScan, tuple[LayerScan, ...]]:
    """Scan an image of a registry as its layers arrive, without storing them."""
    manifest = registry.fetch_manifest(reference)
    pinned = reference.with_digest(manifest.digest)
    return scan_image(
        manifest, lambda blob: cast(BinaryIO, _Arriving(registry.fetch_blob(pinned, blob))), rules, cache, limits
    )


def scan_image(
    manifest: Manifest, open_blob: OpenBlob, rules: Rules, cache: ScanCache | None, limits: Limits
) -> tuple[ImageScan, tuple[LayerScan, ...]]:
    """Scan the blobs that `open_blob` gives; IntegrityError when one is not what the manifest or config says."""
    with open_blob(manifest.view.config) as stream:
        config = ImageConfig(stream.read())
    if config.digest != manifest.view.config.digest:
        raise IntegrityError("the image config has another digest", where=manifest.digest)
    layers = tuple(_layer(blob, open_blob, rules, cache, limits) for blob in manifest.view.layers)
    if tuple(layer.diff_id for layer in layers) != config.view.rootfs.diff_ids:
        raise IntegrityError("the layers unpack to other content than the config says", where=manifest.digest)
    return judge_image(layers, config, rules), layers


def render(scan: ImageScan) -> str:
    """The verdict as plain text: a line a layer, a line a finding, and one that sums up."""
    lines = ["layer         entries    unpacked  archives  stores   objects   allowed  findings"]
    lines += map(_layer_line, scan.layers)
    lines += [_leak_line(leak) for reach in CLASSES for leak in scan.of(reach)]
    counts = ", ".join(f"{len(scan.of(reach))} {reach}" for reach in CLASSES)
    bases = ", ".join(scan.base_commits) or "none found"
    return "\n".join([*lines, f"base commits: {bases}", f"findings: {counts}", ""])


def _layer_line(layer: LayerProof) -> str:
    return (
        f"{layer.layer[7:19]}  {layer.entries:>7}  {layer.unpacked_bytes:>10}  {layer.archives:>8}"
        f"  {layer.git_stores:>6}  {layer.objects_seen:>8}  {layer.objects_allowed:>8}  {layer.leaks:>8}"
    )


def _leak_line(leak: Leak) -> str:
    place = f"{leak.path or '(image)'} in {leak.layer[7:19] or 'config'}"
    label = f" ({leak.label})" if leak.label else ""
    objects = f", {leak.count} objects, first {leak.objects[0]}" if leak.objects else ""
    return f"{leak.reach}: {leak.kind}: {place}: {leak.how}{label}{objects}"


def _layer(blob: Descriptor, open_blob: OpenBlob, rules: Rules, cache: ScanCache | None, limits: Limits) -> LayerScan:
    known = cache.get(blob.digest, rules.layer_digest) if cache else None
    if known is not None:
        scan = LayerScan.load(known, f"scan of {blob.digest}")
        if scan.layer == blob.digest and scan.rules == rules.layer_digest:
            return scan
    with open_blob(blob) as stream:
        scan = scan_layer(stream, blob.media_type, rules, limits)
    if scan.layer != blob.digest or scan.compressed_bytes != blob.size:
        raise IntegrityError("a layer has another digest or size than its manifest says", where=blob.digest)
    if cache:
        cache.put(blob.digest, rules.layer_digest, scan.to_bytes())
    return scan


class _Arriving(io.RawIOBase):
    """Chunks from the network as a readable."""

    def __init__(self, chunks: Iterator[bytes] | Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._left = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        if size < 0:
            left, self._left = self._left, b""
            return left + b"".join(self._chunks)
        while not self._left:
            following = next(self._chunks, None)
            if following is None:
                return b""
            self._left = following
        data, self._left = self._left[:size], self._left[size:]
        return data
