"""Verify: what anybody can do with a clone and the network, and no credential.

Every byte is pulled into an empty store, every attestation is verified, every layer is scanned and the whole behavioural
suite is run again in containers made from those bytes. What was seen becomes the evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.errors import IntegrityError
from pipeline.model.evidence import Pull
from pipeline.model.stages import AttestationKind
from pipeline.paths import Paths
from pipeline.plan import Plan, PlannedImage
from pipeline.ports import BundleVerifier, Engine, PullRegistry, Reporter
from pipeline.scan.record import ImageScan
from pipeline.stages.attestations import FoundAttestation, fetch_attestations, require_all
from pipeline.stages.examiner import Examination, Examiner
from pipeline.stages.pull import PulledImage, pull_image
from pipeline.stages.records import has_record, load_published


@dataclass(frozen=True)
class VerifyPorts:
    """What verifying needs from the world. `registry` has no path to a credential."""

    registry: PullRegistry
    engine: Engine
    verifier: BundleVerifier
    examiner: Examiner
    reporter: Reporter


@dataclass(frozen=True)
class VerifiedImage:
    """What verify saw of one image."""

    image: PlannedImage
    pulled: PulledImage
    pull: Pull
    attestations: Mapping[AttestationKind, FoundAttestation]
    scan: ImageScan
    examination: Examination


def verify(plan: Plan, paths: Paths, ports: VerifyPorts, known: Mapping[str, str]) -> tuple[VerifiedImage, ...]:
    """Verify every image of the plan; `known` are digests by image id that committed evidence names."""
    return tuple(verify_image(image, paths, ports, known.get(image.id)) for image in plan.images)


def verify_image(image: PlannedImage, paths: Paths, ports: VerifyPorts, known: str | None) -> VerifiedImage:
    """Verify one image from its dated tag; IntegrityError or VerificationError says what does not hold."""
    # 1. What the tag names now must be what was published.
    tag_digest = ports.registry.fetch_manifest(image.reference).digest
    _check_tag(image, tag_digest, _expected_digest(image, paths) or known)
    pinned = image.repository.with_digest(tag_digest)

    # 2. Every byte of it, into an empty store.
    pulled = pull_image(pinned, paths.pulled(image.id), ports.registry, ports.reporter)

    # 3. Who signed it, and what was attested: one of each kind, all verified.
    attestations = fetch_attestations(pinned, ports.registry, ports.verifier)
    require_all(attestations, pinned)

    # 4. Nothing of the future and no fixture in any layer.
    scan = ports.examiner.scan(image, pulled.layout, pulled.manifest, pulled.config)

    # 5. The engine gets exactly these bytes: nothing that it had before is used.
    image_id = pulled.config.digest
    ports.engine.remove_image(image_id)
    with ports.reporter.step(f"{image.id}: load into the engine"):
        loaded = ports.engine.load(pulled.layout, pulled.manifest, f"verify-{image.id}")

    # 6. The whole suite, in containers of these bytes; then a pull as a person does it.
    try:
        examination = ports.examiner.check(image, pulled.manifest, pulled.config, loaded)
        person = ports.engine.pull(pinned)
    finally:
        ports.engine.remove_image(image_id)
    pull = Pull(
        reference=str(pinned),
        tag_digest=tag_digest,
        blobs=pulled.blobs,
        engine_image_id=loaded,
        person_pull_image_id=person,
    )
    _check_ids(pull, pulled)
    return VerifiedImage(image, pulled, pull, attestations, scan, examination)


def _expected_digest(image: PlannedImage, paths: Paths) -> str | None:
    if not has_record(paths.published(image.id)):
        return None
    return load_published(paths, image.id).reference.rpartition("@")[2]


def _check_tag(image: PlannedImage, found: str, expected: str | None) -> None:
    if expected is not None and found != expected:
        raise IntegrityError(
            f"the tag names {found}, and {expected} was published",
            where=str(image.reference),
            remedy="the registry lags, or somebody moved the tag: do not use this tag",
        )


def _check_ids(pull: Pull, pulled: PulledImage) -> None:
    for name, found in (("loaded", pull.engine_image_id), ("pulled by the engine", pull.person_pull_image_id)):
        if found != pulled.config.digest:
            raise IntegrityError(f"the image {name} is {found}, not {pulled.config.digest}", where=pull.reference)
