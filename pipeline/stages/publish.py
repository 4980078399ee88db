"""Publish: push what was built, sign and attest it, read everything back, and only then let a tag point at it.

Safe to repeat from any point. Signed bundles are journalled before they are pushed, so an interrupted run attaches the
same bytes again; and what the registry already holds and verifies is never signed a second time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.derive.release_manifest import Released
from pipeline.derive.statements import load_statement, make_summary_statement
from pipeline.errors import AbsentError, IntegrityError, StageError
from pipeline.files import read_bytes_limited, write_atomic
from pipeline.layout import Layout
from pipeline.model.attachment import make_referrer
from pipeline.model.attestation import MAX_BUNDLE_BYTES, PREDICATE_TYPES, sha256_descriptor
from pipeline.model.digest import digest_of, hex_of
from pipeline.model.oci import Descriptor, Manifest
from pipeline.model.record import canonical_json
from pipeline.model.reference import Reference
from pipeline.model.stages import Attached, AttestationKind, BuiltImage, PublishedImage
from pipeline.paths import Paths
from pipeline.plan import Plan, PlannedImage
from pipeline.ports import BundleVerifier, PushRegistry, Reporter, Signer
from pipeline.stages.attestations import (
    KINDS,
    FoundAttestation,
    attached,
    fetch_attestations,
    require_all,
    verify_bundle,
    verify_referrer_ways,
)
from pipeline.stages.inputs import digest_inputs
from pipeline.stages.journal import push_bundle_blobs, sign_once
from pipeline.stages.records import RECORD_NAME, load_built, load_manifest, read_output
from pipeline.stages.release_manifest import describe_release, find_place, publish_release


@dataclass(frozen=True)
class PublishPorts:
    """What publishing needs from the world."""

    registry: PushRegistry
    signer: Signer
    verifier: BundleVerifier
    reporter: Reporter
    revision: str


def publish(plan: Plan, paths: Paths, ports: PublishPorts) -> tuple[PublishedImage, ...]:
    """Publish every image of the plan, each after its base; then the signed manifest of the whole release."""
    place = find_place(plan)
    published = tuple(publish_image(plan, image, paths, ports) for image in plan.images)
    manifest = describe_release(plan, [_released(plan, record) for record in published])
    with ports.reporter.step("release: sign the manifest"):
        publish_release(place, manifest, paths.published_release, ports.registry, ports.signer, ports.verifier)
    return published


def publish_image(plan: Plan, image: PlannedImage, paths: Paths, ports: PublishPorts) -> PublishedImage:
    """Publish one image; IntegrityError when its dated tag already names another digest."""
    # 1. What was built, with every digest recomputed, from the sources as they are now.
    built, layout = load_built(paths, image.id)
    _require_fresh(plan, image, built, paths, ports.revision)
    manifest = load_manifest(layout, built.manifest_digest, built.manifest_media_type)
    pinned = image.repository.with_digest(built.manifest_digest)

    # 2. The dated tag is free, or names this digest already.
    tagged = _check_tag(image.reference, built.manifest_digest, ports.registry)

    # 3. Blobs, then the manifest by digest. A pinned image is there already.
    if not built.pinned:
        _push_blobs(plan, image, built, layout, manifest, ports)
        ports.registry.push_manifest(pinned, manifest)
    _check_served(pinned, manifest, ports.registry)

    # 4. One attestation of each kind, attached and read back.
    attested = _attest(plan, pinned, manifest, built, paths, ports)

    # 5. The tag, last: no tag ever points at an unsigned digest.
    if not tagged:
        ports.registry.push_manifest(image.reference, manifest)
        _check_tag(image.reference, built.manifest_digest, ports.registry)

    # 6. The record.
    record = PublishedImage(
        release=paths.release,
        target=paths.target,
        image=image.id,
        built_record=digest_of(read_bytes_limited(paths.built(image.id) / RECORD_NAME, MAX_BUNDLE_BYTES)),
        reference=str(pinned),
        tag=image.reference.tag or "",
        attestations=attested,
    )
    write_atomic(paths.published(image.id) / RECORD_NAME, record.to_bytes())
    return record


def _require_fresh(plan: Plan, image: PlannedImage, built: BuiltImage, paths: Paths, revision: str) -> None:
    below = load_built(paths, image.base)[0].manifest_digest if image.base_kind == "image" else None
    if digest_inputs(plan, image, below, revision) != built.inputs:
        raise StageError(
            "the sources, the base or the commit have changed since this was built",
            where=str(paths.built(image.id) / RECORD_NAME),
            remedy="run: nox -s build",
        )


def _released(plan: Plan, record: PublishedImage) -> Released:
    bundles = {attestation.kind: attestation.bundle_digest for attestation in record.attestations}
    return Released(record.image, plan.image(record.image).reference, record.reference.rpartition("@")[2], bundles)


def _check_tag(tag: Reference, digest: str, registry: PushRegistry) -> bool:
    try:
        found = registry.fetch_manifest(tag).digest
    except AbsentError:
        return False
    if found != digest:
        raise IntegrityError(
            f"the tag already names {found}, and {digest} was built",
            where=str(tag),
            remedy="a dated tag never moves: release under another date in release.yaml",
        )
    return True


def _push_blobs(
    plan: Plan, image: PlannedImage, built: BuiltImage, layout: Layout, manifest: Manifest, ports: PublishPorts
) -> None:
    mount_from = _base_repository(plan, image, built)
    blobs: tuple[Descriptor, ...] = (*manifest.view.layers, manifest.view.config)
    with ports.reporter.step(f"{image.id}: push", sum(blob.size for blob in blobs)) as advance:
        for blob in blobs:
            ports.registry.push_blob(image.repository, blob, layout, mount_from)
            advance(blob.size)


def _base_repository(plan: Plan, image: PlannedImage, built: BuiltImage) -> str | None:
    registry, _, rest = built.base.partition("/")
    if registry != plan.target.registry:
        return None
    repository = rest.partition("@")[0]
    return None if repository == image.repository.repository else repository


def _check_served(pinned: Reference, manifest: Manifest, registry: PushRegistry) -> None:
    served = registry.fetch_manifest(pinned)
    if served.raw != manifest.raw:
        raise IntegrityError("the registry serves other bytes than were pushed", where=str(pinned))


def _attest(
    plan: Plan, pinned: Reference, manifest: Manifest, built: BuiltImage, paths: Paths, ports: PublishPorts
) -> tuple[Attached, ...]:
    folder = paths.built(built.image)
    statements = {kind: read_output(folder, built.output(f"statements/{kind}.json")) for kind in KINDS[:-1]}
    with ports.reporter.step(f"{built.image}: attest", len(KINDS)) as advance:
        present = fetch_attestations(pinned, ports.registry, ports.verifier)
        for kind, statement in statements.items():
            if kind not in present:
                _attach(pinned, manifest, kind, statement, paths.published(built.image), ports)
            advance(1)
        present = fetch_attestations(pinned, ports.registry, ports.verifier)
        if "summary" not in present:
            summary = _make_summary(plan, pinned, present)
            _attach(pinned, manifest, "summary", summary, paths.published(built.image), ports)
        advance(1)
    found = fetch_attestations(pinned, ports.registry, ports.verifier)
    require_all(found, pinned)
    verify_referrer_ways(pinned, ports.registry)
    for kind, statement in statements.items():
        _note_difference(found[kind], kind, statement, pinned, ports.reporter)
    return tuple(attached(kind, found[kind]) for kind in KINDS)


def _make_summary(plan: Plan, pinned: Reference, present: Mapping[AttestationKind, FoundAttestation]) -> bytes:
    # build refuses an image that a policy rejects, so what is published has passed
    policies = canonical_json([policy.model_dump(mode="json") for policy in plan.release.policies])
    inputs = [sha256_descriptor(digest_of(found.attested.bundle), name=kind) for kind, found in present.items()]
    return make_summary_statement(
        pinned,
        passed=True,
        verifier_id=plan.target.identity.subject,
        policy=sha256_descriptor(digest_of(policies), uri=f"{plan.release.file.source}/tree/main/policies"),
        inputs=inputs,
    )


def _attach(
    pinned: Reference, manifest: Manifest, kind: AttestationKind, statement: bytes, folder: Path, ports: PublishPorts
) -> None:
    name = f"{hex_of(pinned.digest or '')[:16]}-{kind}"
    attested = sign_once(
        folder,
        name,
        statement,
        ports.signer,
        lambda bundle, at: verify_bundle(bundle, kind, pinned, at, ports.verifier),
    )
    referrer = make_referrer(manifest.descriptor, attested.bundle, PREDICATE_TYPES[kind], attested.signed_at)
    push_bundle_blobs(pinned, referrer, attested.bundle, folder, ports.registry)
    ports.registry.push_referrer(pinned, referrer)


def _note_difference(
    found: FoundAttestation, kind: AttestationKind, statement: bytes, pinned: Reference, reporter: Reporter
) -> None:
    # an image that is bit for bit the same keeps what was attested first: exactly one of each kind
    if found.attested.predicate != load_statement(statement, kind).predicate:
        reporter.note(f"{pinned}: keeps the {kind} attestation of {found.attested.signed_at}")
