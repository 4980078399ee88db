"""A whole tiny release over the real registry, Sigstore and engine, with each of the two kinds of log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.adapters.engine import DockerEngine
from pipeline.embedded.services import Services
from pipeline.errors import IntegrityError
from pipeline.model.attachment import make_referrer
from pipeline.model.attestation import PREDICATE_TYPES
from pipeline.model.reference import Reference
from pipeline.model.stages import AttestationKind
from pipeline.stages.journal import push_bundle_blobs
from pipeline.stages.records import load_built
from tests.fakes.real_release import RealWorld
from tests.fakes.release import REPAIR, edit_yaml

pytestmark = pytest.mark.services
ENTRIES = {1: {"kind": "dsse", "version": "0.0.1"}, 2: {"kind": "hashedrekord", "version": "0.0.2"}}


@pytest.fixture(params=[1, 2], ids=["rekor-v1", "rekor-v2"])
def rekor(request: pytest.FixtureRequest) -> int:
    version: int = request.param
    return version


@pytest.fixture
def published(tmp_path: Path, services: Services, engine: DockerEngine, rekor: int) -> RealWorld:
    world = RealWorld(tmp_path / "release", services, engine)

    def change(release: dict[str, Any]) -> None:
        release["targets"]["local"]["rekor"] = rekor

    edit_yaml(world.release_path, change)
    world.build()
    world.publish()
    return world


def pinned(world: RealWorld, image: str) -> Reference:
    return world.plan.image(image).repository.with_digest(load_built(world.paths, image)[0].manifest_digest)


def attach(world: RealWorld, image: str, bundle: bytes, kind: AttestationKind) -> None:
    place, publisher = pinned(world, image), world.make_publisher()
    subject = publisher.fetch_manifest(place).descriptor
    referrer = make_referrer(subject, bundle, PREDICATE_TYPES[kind], "2026-10-12T09:00:00Z")
    push_bundle_blobs(place, referrer, bundle, world.root / "attached", publisher)
    publisher.push_referrer(place, referrer)


def test_a_release_is_published_verified_and_reviewed(published: RealWorld, rekor: int) -> None:
    assert published.verify().passed
    assert published.review().bundles == 2 * len(PREDICATE_TYPES) + 1
    bundles = sorted(published.paths.evidence.rglob("*.sigstore.json"))
    assert len(bundles) == 13
    for path in bundles:
        material = json.loads(path.read_bytes())["verificationMaterial"]
        [entry] = material["tlogEntries"]
        assert entry["kindVersion"] == ENTRIES[rekor], path.name
        assert len(material["timestampVerificationData"]["rfc3161Timestamps"]) == 1


def test_a_second_attestation_that_holds_as_well_is_refused(published: RealWorld) -> None:
    statement = (published.paths.built(REPAIR) / "statements/scan.json").read_bytes()
    attach(published, REPAIR, published.signer.sign(statement), "scan")
    for stage in (published.verify, published.publish):
        with pytest.raises(IntegrityError, match="two scan attestations on one digest"):
            stage()
