"""Sizes with shared layers counted once, on the published images' real layer sizes."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pipeline.model.oci import OCI_CONFIG, OCI_LAYER_GZIP, OCI_MANIFEST, Manifest
from pipeline.report.sizes import measure

PYROMAT = [
    (431542190, "9a1e383e068632047045a276f891d457dff25d68d1c0a20eeeceb8b81b855b35"),
    (140501547, "1b41855cccc730788360ef6261e2516d24d3c5f015b319ed61d0413c200802ce"),
    (4020, "006a47175527b3de695ebaec3280907ae6f2fbd7878a7d39495382b98088cbc7"),
    (2271, "92e87f787a050392916c7d331c0c6593a80ec9ac92544b33b6ebe33d747aa3cc"),
    (1901783, "647d66c53d9fb3c47deca38b6b85501a4c6cc5d3e5f1744f6f56cf080316d28d"),
    (32, "4f4fb700ef54461cfa02571ae0db9a0dc1e0cdb5577484a6d75e68dc38e8acc1"),
]
MRI = [
    (662840610, "5e2ef81cc2107356373c2575cbb72bbf9a2984fc0092745e0ab1c8f6d1d6077f"),
    (140499773, "824e3e1b0f3d3f0fdf46d51b313f65e3f65781f40cd19a1b8c4d16411969938f"),
    (4020, "42809c16ecdd42043e4a78f39b04abe03b2a1fc50a563982e8df287b5426e1d1"),
    (2362, "078f81a721694f8a66ef126620c5611b327637ef291ef4444f4741dea8a49e57"),
    (107774647, "dadc262899197171635be1d95806a35f2ac4f6817f22df39763c738617ca36dd"),
    (32, "4f4fb700ef54461cfa02571ae0db9a0dc1e0cdb5577484a6d75e68dc38e8acc1"),
]


def manifest(layers: Sequence[tuple[int, str]], config_bytes: int = 1000) -> Manifest:
    """A manifest of layers (size, hex)."""
    document = {
        "schemaVersion": 2,
        "config": {"mediaType": OCI_CONFIG, "digest": "sha256:" + "c" * 64, "size": config_bytes},
        "layers": [{"mediaType": OCI_LAYER_GZIP, "digest": f"sha256:{hex_}", "size": size} for size, hex_ in layers],
    }
    return Manifest(json.dumps(document).encode(), OCI_MANIFEST)


def test_release_total_counts_shared_layers_once() -> None:
    software = [*PYROMAT, (16886, "e" * 64)]
    sizes = measure({"software": manifest(software), "pyromat": manifest(PYROMAT), "mri": manifest(MRI)})

    # the publisher recorded 1,485,090,141; the published images' layers are these, and what software adds
    assert sizes.layers_once_bytes == 1_485_090_141
    assert sizes.sum_bytes == 2 * 573_951_843 + 16_886 + 911_121_444 + 3 * 1000


def test_runtime_layers_that_differ_by_digest_only_are_named_with_their_cost() -> None:
    sizes = measure({"pyromat": manifest(PYROMAT), "mri": manifest(MRI)})

    assert [(pair.first, pair.wasted_bytes) for pair in sizes.near_identical] == [
        ("sha256:1b41855cccc730788360ef6261e2516d24d3c5f015b319ed61d0413c200802ce", 140499773)
    ]


def test_unshared_bytes_of_a_derived_image_are_its_own_layer_and_config() -> None:
    sizes = measure({"software": manifest([*PYROMAT, (16886, "e" * 64)], 700), "pyromat": manifest(PYROMAT)})

    assert [image.unshared_bytes for image in sizes.images] == [16886 + 700, 1000]


def test_a_layer_twice_in_one_image_is_transferred_once_but_listed_twice() -> None:
    doubled = manifest([PYROMAT[5], PYROMAT[5]])

    assert measure({"x": doubled}).layers_once_bytes == 32
    assert len(measure({"x": doubled}).images[0].layers) == 2
