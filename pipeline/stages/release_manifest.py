"""The release manifest: signed after all images are published, fetched and verified by whoever has none of our disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.derive.release_manifest import (
    NAME,
    Released,
    load_artifact,
    make_artifact,
    make_release_manifest,
    make_release_statement,
    release_reference,
    subject_digests,
)
from pipeline.errors import AbsentError, ConfigError, IntegrityError
from pipeline.model.attestation import RELEASE_MANIFEST, ReleaseManifest
from pipeline.model.reference import Reference
from pipeline.plan import Plan
from pipeline.ports import Attested, BundleVerifier, PullRegistry, PushRegistry, Signer
from pipeline.stages.journal import push_bundle_blobs, sign_once


def find_place(plan: Plan) -> Reference:
    """Where the manifest is published; ConfigError when an image has this place."""
    place = release_reference(plan.target, plan.release.file.release)
    if any(image.reference == place for image in plan.images):
        raise ConfigError(
            f"an image has the id {NAME!r}, which names the release manifest",
            where=str(place),
            remedy="give the image another id in the release file",
        )
    return place


def describe_release(plan: Plan, images: Sequence[Released]) -> ReleaseManifest:
    """What is signed of a release on a target."""
    return make_release_manifest(plan.release.file.release, plan.target_name, plan.release.file.source, images)


def publish_release(
    place: Reference,
    manifest: ReleaseManifest,
    folder: Path,
    registry: PushRegistry,
    signer: Signer,
    verifier: BundleVerifier,
) -> Attested:
    """Sign a release once, tag it, and read it back; IntegrityError when the dated tag holds another release."""
    # 1. What is there already is never signed a second time.
    try:
        return fetch_release(place, manifest, registry, verifier)
    except AbsentError:
        pass
    # 2. Sign, or take what an interrupted run signed.
    statement = make_release_statement(manifest)
    attested = sign_once(
        folder, NAME, statement, signer, lambda bundle, where: verify_release(bundle, manifest, where, verifier)
    )
    # 3. Blobs, then the tag.
    artifact = make_artifact(attested.bundle, attested.signed_at)
    push_bundle_blobs(place, artifact, attested.bundle, folder, registry)
    registry.push_manifest(place, artifact)
    # 4. Read back.
    return fetch_release(place, manifest, registry, verifier)


def fetch_release(
    place: Reference, expected: ReleaseManifest, registry: PullRegistry, verifier: BundleVerifier
) -> Attested:
    """The verified manifest under a tag; AbsentError when there is none, IntegrityError unless it says `expected`."""
    artifact = registry.fetch_manifest(place)
    pinned = place.with_digest(artifact.digest)
    bundle = b"".join(registry.fetch_blob(pinned, load_artifact(artifact, str(place))))
    return verify_release(bundle, expected, str(place), verifier)


def verify_release(bundle: bytes, expected: ReleaseManifest, where: str, verifier: BundleVerifier) -> Attested:
    """Verify a bundle about exactly the images of `expected`, which says exactly that; IntegrityError otherwise."""
    try:
        attested = verifier.verify_joint(
            bundle, subject_digests=subject_digests(expected), predicate_type=RELEASE_MANIFEST
        )
    except IntegrityError as error:
        raise IntegrityError(
            f"the release manifest does not verify: {error.what}", where=f"{where}: {error.where}", remedy=_REMEDY
        ) from error
    if attested.predicate != expected.to_json():
        raise IntegrityError(
            "the release manifest is of another release, or names other attestations", where=where, remedy=_REMEDY
        )
    return attested


_REMEDY = "a dated release never changes: release under another date, or do not use what is there"
