"""The signed release manifest: one statement about all images of a release, and the OCI artifact that carries it.

The artifact is found by a tag, as images are, and holds one Sigstore bundle: docs/adr/0012-release-manifest.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.derive.statements import check_size
from pipeline.errors import HostileInputError
from pipeline.model.attachment import CREATED, EMPTY_CONFIG
from pipeline.model.attestation import (
    MAX_BUNDLE_BYTES,
    MAX_SUBJECTS,
    RELEASE_MANIFEST,
    STATEMENT_TYPE,
    DigestSet,
    ReleasedDigest,
    ReleaseManifest,
    Statement,
    Subject,
    sha256_descriptor,
)
from pipeline.model.digest import digest_of, hex_of
from pipeline.model.oci import OCI_EMPTY, OCI_MANIFEST, SIGSTORE_BUNDLE, Descriptor, Manifest
from pipeline.model.record import canonical_json
from pipeline.model.reference import Reference
from pipeline.model.release import Target
from pipeline.model.stages import AttestationKind

ARTIFACT_TYPE = "application/vnd.mimo-openenv-software.release.v1"
BUNDLE_NAME = "release.sigstore.json"
TITLE = "org.opencontainers.image.title"
NAME = "release"


@dataclass(frozen=True)
class Released:
    """One image as the manifest names it: its id, dated tag, manifest digest, and the digest of each bundle."""

    id: str
    tagged: Reference
    digest: str
    bundles: Mapping[AttestationKind, str]


def release_reference(target: Target, date: str) -> Reference:
    """Where the manifest of a dated release is, beside its images; no image may have the id `release`."""
    if "{image}" in target.repository:
        return Reference(target.registry, target.repository.replace("{image}", NAME), date)
    return Reference(target.registry, target.repository, f"{NAME}-{date}")


def make_release_manifest(release: str, target: str, source: str, images: Sequence[Released]) -> ReleaseManifest:
    """The predicate; images and attestations in their given order, which is the release's."""
    return ReleaseManifest(release=release, target=target, source=source, images=tuple(map(_describe, images)))


def make_release_statement(manifest: ReleaseManifest) -> bytes:
    """Canonical bytes of the statement that is signed: its subjects are the images, in order.

    HostileInputError for more than MAX_SUBJECTS images, or none.
    """
    if not 0 < len(manifest.images) <= MAX_SUBJECTS:
        raise HostileInputError(f"a release of {len(manifest.images)} images; the limit is {MAX_SUBJECTS}")
    statement = Statement(
        _type=STATEMENT_TYPE,
        subject=tuple(Subject(name=image.repository, digest=image.digest) for image in manifest.images),
        predicateType=RELEASE_MANIFEST,
        predicate=manifest.to_json(),
    ).to_bytes()
    check_size(statement, "the release manifest")
    return statement


def subject_digests(manifest: ReleaseManifest) -> tuple[str, ...]:
    """Of the images, in OCI form and in order."""
    return tuple(f"sha256:{image.digest.sha256}" for image in manifest.images)


def make_artifact(bundle: bytes, signed_at: str) -> Manifest:
    """The OCI manifest of a bundle (JSON bytes); `signed_at` is its signed time, so that no clock is read.

    Push `EMPTY_CONFIG` and `bundle` as blobs first.
    """
    config = Descriptor(mediaType=OCI_EMPTY, digest=digest_of(EMPTY_CONFIG), size=len(EMPTY_CONFIG))
    title = {TITLE: BUNDLE_NAME}
    layer = Descriptor(mediaType=SIGSTORE_BUNDLE, digest=digest_of(bundle), size=len(bundle), annotations=title)
    document = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "artifactType": ARTIFACT_TYPE,
        "config": config.to_json(),
        "layers": [layer.to_json()],
        "annotations": {CREATED: signed_at},
    }
    return Manifest(canonical_json(document), OCI_MANIFEST)


def load_artifact(manifest: Manifest, where: str) -> Descriptor:
    """The bundle to fetch; HostileInputError when the manifest is not one that `make_artifact` makes."""
    view = manifest.view
    fits = {
        "artifactType": view.artifact_type == ARTIFACT_TYPE,
        "config": view.config.media_type == OCI_EMPTY and view.config.digest == digest_of(EMPTY_CONFIG),
        "layers": len(view.layers) == 1 and view.layers[0].media_type == SIGSTORE_BUNDLE,
    }
    if wrong := [name for name, is_right in fits.items() if not is_right]:
        raise HostileInputError(f"not a release manifest: {', '.join(wrong)}", where=where)
    if not 0 < view.layers[0].size <= MAX_BUNDLE_BYTES:
        raise HostileInputError(f"a bundle of {view.layers[0].size} bytes", where=where)
    return view.layers[0]


def _describe(image: Released) -> ReleasedDigest:
    return ReleasedDigest(
        id=image.id,
        repository=f"{image.tagged.registry}/{image.tagged.repository}",
        tag=image.tagged.tag or "",
        digest=DigestSet(sha256=hex_of(image.digest)),
        attestations=tuple(sha256_descriptor(digest, name=kind) for kind, digest in image.bundles.items()),
    )
