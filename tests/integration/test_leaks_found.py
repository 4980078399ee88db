"""Each kind of leak is found where it is, and is gone after the strip; the two common rules run beside it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import tests.fakes.leak_kinds  # noqa: F401  (registers the kinds)
from pipeline.derive.layer import make_layer
from pipeline.derive.repository import make_clean_repository, read_layers
from pipeline.derive.rewrite import drop_paths, rewrite_layer
from pipeline.derive.strip import plan_strip
from pipeline.scan.record import ImageScan, LayerScan
from tests.fakes.leaks import LEAKS, REPO, Case, Image, World, make_image


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def strip(image: Image, scan: ImageScan, layers: list[LayerScan], world: World) -> Image:
    """What a build does: rewrite the layers with findings, put the clean repository on top."""
    plan = plan_strip(scan, layers, {REPO: None})
    blobs = []
    for blob, layer in zip(image.blobs, layers, strict=True):
        out = io.BytesIO()
        done = rewrite_layer(io.BytesIO(blob), drop_paths(plan.layers.get(layer.layer, frozenset())), out)
        assert (done is None) == (layer.layer not in plan.layers)
        blobs.append(blob if done is None else out.getvalue())
    source = read_layers([lambda blob=blob: io.BytesIO(blob) for blob in image.blobs], f"{REPO}/.git".encode())
    clean = make_clean_repository(source, world.base, REPO)
    return Image([*blobs, make_layer(clean.entries, 0)[0]])


@pytest.mark.parametrize("kind", sorted(LEAKS))
def test_a_leak_is_found_and_then_gone(kind: str, world: World) -> None:
    case: Case = LEAKS[kind](world)
    rules = case.rules or world.rules()
    image = make_image(case.layers)
    scan, layers = image.scan(rules)
    digest = image.scans_digest[case.layer]
    found = [leak for leak in scan.leaks if leak.layer == digest and leak.path.startswith(case.path)]
    assert {leak.kind for leak in found} == {case.kind}, scan.leaks
    assert {leak.reach for leak in found} == {case.reach}
    after, _ = strip(image, scan, layers, world).scan(rules)
    assert after.leaks == ()
    assert after.layers[-1].objects_seen == after.layers[-1].objects_allowed > 0


def test_the_clean_image_has_no_finding(world: World) -> None:
    scan, _ = make_image(world.with_items()).scan(world.rules(fingerprints=world.future_prints))
    assert scan.leaks == ()
