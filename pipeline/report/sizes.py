"""Compressed sizes of a release: every layer, who shares it, totals with shared layers counted once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from pipeline.model.digest import Digest
from pipeline.model.oci import Manifest
from pipeline.model.record import Record

NEAR_IDENTICAL_RATIO = 0.01
NEAR_IDENTICAL_MIN_BYTES = 1 << 20


class LayerSize(Record):
    """A distinct layer of the release and the images that have it."""

    digest: Digest
    size: int
    images: tuple[str, ...]


class ImageSize(Record):
    """One image: config, layers in order, their sum, and what no other image of the release has."""

    image: str
    manifest_digest: Digest
    config_bytes: int
    layers: tuple[Digest, ...]
    compressed_bytes: int
    unshared_bytes: int


class NearIdentical(Record):
    """Two layers of different images with different digests and almost one size: bytes that sharing would save."""

    first: Digest
    second: Digest
    wasted_bytes: int


class Sizes(Record):
    """Of a release, in compressed bytes. `layers_once_bytes` counts a layer once however many images have it."""

    images: tuple[ImageSize, ...]
    layers: tuple[LayerSize, ...]
    sum_bytes: int
    layers_once_bytes: int
    near_identical: tuple[NearIdentical, ...]


def measure(manifests: Mapping[str, Manifest]) -> Sizes:
    """Sizes of images by id, from their manifests alone."""
    layers: dict[str, tuple[int, list[str]]] = {}
    for image, manifest in manifests.items():
        for layer in manifest.view.layers:
            owners = layers.setdefault(layer.digest, (layer.size, []))[1]
            if image not in owners:
                owners.append(image)
    images = tuple(_image_size(image, manifest, layers) for image, manifest in manifests.items())
    records = tuple(LayerSize(digest=d, size=s, images=tuple(owners)) for d, (s, owners) in layers.items())
    return Sizes(
        images=images,
        layers=records,
        sum_bytes=sum(image.compressed_bytes for image in images),
        layers_once_bytes=sum(layer.size for layer in records),
        near_identical=_near_identical(records),
    )


def _image_size(image: str, manifest: Manifest, layers: Mapping[str, tuple[int, list[str]]]) -> ImageSize:
    own = {layer.digest: layer.size for layer in manifest.view.layers if layers[layer.digest][1] == [image]}
    return ImageSize(
        image=image,
        manifest_digest=manifest.digest,
        config_bytes=manifest.view.config.size,
        layers=tuple(layer.digest for layer in manifest.view.layers),
        compressed_bytes=manifest.compressed_bytes,
        unshared_bytes=sum(own.values()) + manifest.view.config.size,
    )


def _near_identical(layers: Sequence[LayerSize]) -> tuple[NearIdentical, ...]:
    large = [layer for layer in layers if layer.size >= NEAR_IDENTICAL_MIN_BYTES]
    return tuple(
        NearIdentical(first=a.digest, second=b.digest, wasted_bytes=min(a.size, b.size))
        for a, b in combinations(large, 2)
        if not set(a.images) & set(b.images) and abs(a.size - b.size) <= NEAR_IDENTICAL_RATIO * max(a.size, b.size)
    )
