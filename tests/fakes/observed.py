"""An observation of a release that every policy accepts, to be changed one thing at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from pipeline.checks.observations import ImageObservation, ReleaseObservation, ScanSummary, schema_digests
from pipeline.config import load_model
from pipeline.model.finding import CheckReport, CheckResult
from pipeline.model.oci import ImageConfig, Manifest
from pipeline.model.release import Identity, ImageDefinition, Policy
from pipeline.ports import Attested
from pipeline.sbom.document import SbomSubject, make_sbom, want
from pipeline.sbom.rootfs import read_root
from pipeline.strict_yaml import load_document
from tests.fakes.images import EPOCH_S, FakeImage, entry, make_image
from tests.fakes.planted import OS_RELEASE, STATUS, dist

ROOT = Path(__file__).parents[2]
BASE = "sha256:" + "1" * 64
IDENTITY = Identity(subject="https://example.org/release.yml@refs/heads/main", issuer="https://issuer.example.org")
PROVENANCE: Mapping[str, Any] = {
    "buildDefinition": {
        "buildType": "https://github.com/akseljoonas/mimo-openenv-software/blob/main/docs/build-type.md#layers-v1",
        "externalParameters": {"image": "software"},
        "resolvedDependencies": [{"uri": "pkg:deb/debian/bash", "digest": {"sha256": "1" * 64}}],
    },
    "runDetails": {"builder": {"id": "https://example.org/builder"}},
}
LABELS = {
    "source": "https://github.com/example/project",
    "revision": "a" * 40,
    "version": "2026-10-12",
    "created": "2026-10-12T00:00:00Z",
    "licenses": "Apache-2.0",
    "base.name": "ghcr.io/example/task",
    "base.digest": BASE,
}
CONFIG: Mapping[str, Any] = {
    "User": "root",
    "WorkingDir": "/opt/arena",
    "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
    "Cmd": ["/usr/bin/python3", "-I", "/opt/arena/workflow"],
    "ExposedPorts": {"8000/tcp": {}},
    "StopSignal": "SIGTERM",
    "Labels": {f"org.opencontainers.image.{name}": value for name, value in LABELS.items()},
}
HISTORY = [{"created_by": "base: debian"}, {"created_by": "added: runtime"}]


@cache
def load_policies() -> tuple[Policy, ...]:
    """Every policy of the repository."""
    paths = sorted((ROOT / "policies").glob("*.yaml"))
    return tuple(load_model(load_document(path.read_bytes(), path.name), Policy) for path in paths)


def policy(name: str) -> Policy:
    return next(each for each in load_policies() if each.id == name)


@cache
def definition(name: str = "software") -> ImageDefinition:
    path = ROOT / "images" / name / "image.yaml"
    return load_model(load_document(path.read_bytes(), str(path)), ImageDefinition)


@cache
def small_image() -> FakeImage:
    licensed = dist("opt/arena/runtime", "openenv", "0.10.0", extra="License-Expression: BSD-3-Clause")
    return make_image(
        [entry("etc/os-release", OS_RELEASE), entry("var/lib/dpkg/status", STATUS)],
        licensed,
        config={"config": dict(CONFIG), "history": HISTORY},
    )


@cache
def small_sbom() -> bytes:
    image = small_image()
    root = read_root(image.store, image.manifest, image.config, want)
    return make_sbom(root, SbomSubject("software", "2026-10-12", image.manifest.digest, "Apache-2.0"), EPOCH_S)


def report(digest: str, count: int = 595) -> CheckReport:
    results = tuple(
        CheckResult(id=f"check-{index:04}", statement="it holds", expected=1, observed=1, outcome="pass")
        for index in range(count)
    )
    return CheckReport(image="software", manifest_digest=digest, results=results)


def attestations(digest: str) -> tuple[Attested, ...]:
    kinds = policy("signature-identity").parameters["predicate_types"]
    assert isinstance(kinds, list)
    return tuple(
        Attested(
            predicate_type=str(kind),
            subject_digest=digest,
            predicate=dict(PROVENANCE) if "slsa.dev/provenance" in str(kind) else {},
            signed_at="2026-10-12T00:00:00Z",
            identity=IDENTITY.subject,
            issuer=IDENTITY.issuer,
            bundle=b"{}",
        )
        for kind in kinds
    )


@cache
def good_image() -> ImageObservation:
    """An image that every policy accepts."""
    image = small_image()
    digest = image.manifest.digest
    return ImageObservation(
        id="software",
        built=True,
        definition=definition(),
        manifest=image.manifest,
        config=image.config,
        base_reference=f"ghcr.io/example/task@{BASE}",
        base_digest=BASE,
        sbom=small_sbom(),
        provenance=PROVENANCE,
        scan=ScanSummary((), True, tuple(layer.digest for layer in image.manifest.view.layers)),
        before=report(digest),
        after=report(digest),
        attested=attestations(digest),
        schemas=schema_digests(json.loads((ROOT / "policies" / "openenv-schema.json").read_bytes())),
    )


def with_config(changes: Mapping[str, Any], **outer: Any) -> ImageObservation:
    """The good image with another config (and the manifest that names it)."""
    good = good_image()
    document = json.loads(good.config.raw)
    document["config"].update(changes)
    config = ImageConfig(json.dumps({**document, **outer}).encode())
    manifest = json.loads(good.manifest.raw)
    manifest["config"].update(digest=config.digest, size=len(config.raw))
    return replace(good, config=config, manifest=with_raw_manifest(manifest))


def with_manifest(**changes: Any) -> ImageObservation:
    """The good image with another manifest."""
    return replace(good_image(), manifest=with_raw_manifest({**json.loads(good_image().manifest.raw), **changes}))


def with_raw_manifest(document: Mapping[str, Any]) -> Manifest:
    return Manifest(json.dumps(document).encode(), good_image().manifest.media_type)


def release(*images: ImageObservation, stage: str = "verify") -> ReleaseObservation:
    """A release of these images, or of the good one."""
    return ReleaseObservation(stage, images or (good_image(),), IDENTITY)  # type: ignore[arg-type]
