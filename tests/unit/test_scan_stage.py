"""Any image of a registry is scanned as it arrives, anonymously, without being stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import IntegrityError, ServiceError
from pipeline.layout import Layout
from pipeline.model.oci import OCI_LAYER_GZIP, OCI_MANIFEST, Descriptor, Manifest
from pipeline.model.record import canonical_json
from pipeline.model.reference import Reference
from pipeline.scan.rules import Rules
from pipeline.stages.scan import scan_registry
from tests.fakes.leaks import REPO, World, make_image, tree_items
from tests.fakes.registry import Simulation

REFERENCE = Reference("registry.test", "images/task", "1")


@pytest.fixture
def published(tmp_path: Path) -> tuple[Simulation, Manifest, World]:
    world = World(tmp_path)
    image = make_image([world.root_items, tree_items(world.source, REPO, 2000)])
    layout, simulation = Layout(tmp_path / "layout"), Simulation()
    blobs = [
        Descriptor(mediaType=OCI_LAYER_GZIP, digest=layout.write_bytes(blob), size=len(blob)) for blob in image.blobs
    ]
    raw_config = image.config.raw
    config = Descriptor(
        mediaType="application/vnd.oci.image.config.v1+json",
        digest=layout.write_bytes(raw_config),
        size=len(raw_config),
    )
    for blob in (*blobs, config):
        simulation.publisher.push_blob(REFERENCE, blob, layout, None)
    document = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": config.to_json(),
        "layers": [blob.to_json() for blob in blobs],
    }
    manifest = Manifest(canonical_json(document), OCI_MANIFEST)
    simulation.publisher.push_manifest(REFERENCE, manifest)
    return simulation, manifest, world


def test_an_image_of_a_registry_is_scanned(published: tuple[Simulation, Manifest, World]) -> None:
    simulation, manifest, world = published
    scan, _ = scan_registry(simulation.anonymous, REFERENCE, world.rules())
    assert [layer.layer for layer in scan.layers] == [layer.digest for layer in manifest.view.layers]
    assert {leak.kind for leak in scan.leaks} == {"future"}
    assert not any(operation.startswith("push") for operation, _ in simulation.operations[4:])


def test_without_a_base_commit_head_is_the_base(published: tuple[Simulation, Manifest, World]) -> None:
    simulation, _, world = published
    scan, _ = scan_registry(simulation.anonymous, REFERENCE, Rules())
    assert scan.base_commits == (world.head,)
    assert scan.leaks == ()


@pytest.mark.parametrize(("fault", "error"), [("truncated", ServiceError), ("corrupted", IntegrityError)])
def test_a_registry_that_serves_other_bytes_is_an_error(
    published: tuple[Simulation, Manifest, World], fault: str, error: type[Exception]
) -> None:
    simulation, manifest, world = published
    getattr(simulation.faults, fault).add(manifest.view.layers[1].digest)
    with pytest.raises(error):
        scan_registry(simulation.anonymous, REFERENCE, world.rules())
