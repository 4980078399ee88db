"""Verify: what anybody can do with a clone and the network, and no credential.

Every byte is pulled into an empty store, every attestation is verified, every layer is scanned, and the whole
behavioural suite is run again in containers made from those bytes. What was seen becomes the evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pipeline.derive.release_manifest import Released
from pipeline.errors import AbsentError, IntegrityError
from pipeline.model.digest import digest_of
from pipeline.model.evidence import Pull
from pipeline.model.reference import Reference
from pipeline.model.stages import AttestationKind
from pipeline.paths import Paths
from pipeline.plan import Plan, PlannedImage
from pipeline.ports import Attested, BundleVerifier, Engine, PullRegistry, Reporter
from pipeline.scan.record import ImageScan
from pipeline.stages.attestations import KINDS, FoundAttestation, fetch_attestations, require_all
from pipeline.stages.examiner import Examination, Examiner, run_together
from pipeline.stages.pull import PulledImage, pull_image
from pipeline.stages.records import has_record, load_published
from pipeline.stages.release_manifest import describe_release, fetch_release, find_place


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


@dataclass(frozen=True)
class Pulled:
    """An image after the anonymous pull, with its attestations verified and its layers scanned."""

    image: PlannedImage
    pinned: Reference
    pulled: PulledImage
    attestations: Mapping[AttestationKind, FoundAttestation]
    scan: ImageScan


@dataclass(frozen=True)
class VerifiedRelease:
    """What verify saw of a release: its images, and the signed manifest over all of them."""

    images: tuple[VerifiedImage, ...]
    manifest: Attested


def verify(plan: Plan, paths: Paths, ports: VerifyPorts, known: Mapping[str, str]) -> VerifiedRelease:
    """Verify every image of the plan; `known` are digests by image id that committed evidence names."""
    pulled = [pull_and_verify(image, paths, ports, known.get(image.id)) for image in plan.images]
    manifest = _verify_manifest(plan, pulled, ports)
    images = run_together([partial(_replay, one, ports) for one in pulled], ports.examiner.stop)
    return VerifiedRelease(images, manifest)


def _verify_manifest(plan: Plan, pulled: Sequence[Pulled], ports: VerifyPorts) -> Attested:
    """The signed manifest names exactly what was pulled: every image, every digest, every attestation."""
    expected = describe_release(plan, [_released(one) for one in pulled])
    with ports.reporter.step("release: verify the manifest"):
        try:
            return fetch_release(find_place(plan), expected, ports.registry, ports.verifier)
        except AbsentError as error:
            error.remedy = "the release is not whole until its manifest is published; run: nox -s publish"
            raise


def _released(one: Pulled) -> Released:
    bundles = {kind: digest_of(one.attestations[kind].attested.bundle) for kind in KINDS}
    return Released(one.image.id, one.image.reference, one.pulled.manifest.digest, bundles)


def pull_and_verify(image: PlannedImage, paths: Paths, ports: VerifyPorts, known: str | None) -> Pulled:
    """From the dated tag to verified bytes on disk; IntegrityError says what does not hold."""
    # 1. What the tag names now must be what was published.
    tag_digest = ports.registry.fetch_manifest(image.reference).digest
    _check_tag(image, tag_digest, _expected_digest(image, paths) or known)
    pinned = image.repository.with_digest(tag_digest)

    # 2. Every byte of it, into an empty store.
    pulled = pull_image(pinned, paths.pulled(image.id), ports.registry, ports.reporter)

    # 3. Who signed it, and what was attested: one of each kind, all verified.
    with ports.reporter.step(f"{image.id}: verify attestations"):
        attestations = fetch_attestations(pinned, ports.registry, ports.verifier)
        require_all(attestations, pinned)

    # 4. Nothing of the future and no fixture in any layer.
    scan = ports.examiner.scan(image, pulled.layout, pulled.manifest, pulled.config)
    return Pulled(image, pinned, pulled, attestations, scan)


def _replay(one: Pulled, ports: VerifyPorts) -> VerifiedImage:
    # 5. The engine gets exactly these bytes: nothing that it had before is used.
    pulled, image = one.pulled, one.image
    ports.engine.remove_image(pulled.config.digest)
    with ports.reporter.step(f"{image.id}: load into the engine"):
        loaded = ports.engine.load(pulled.layout, pulled.manifest, f"verify-{image.id}")

    # 6. The whole suite, in containers of these bytes; then a pull as a person does it.
    try:
        examination = ports.examiner.check(image, pulled.manifest, pulled.config, loaded)
        person = ports.engine.pull(one.pinned)
    finally:
        ports.engine.remove_image(loaded)
    pull = Pull(
        reference=str(one.pinned),
        tag_digest=pulled.manifest.digest,
        blobs=pulled.blobs,
        engine_image_id=loaded,
        person_pull_image_id=person,
    )
    _check_ids(pull, pulled)
    return VerifiedImage(image, pulled, pull, one.attestations, one.scan, examination)


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
