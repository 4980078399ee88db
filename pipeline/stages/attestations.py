"""The attestations that hang on a digest: fetched as referrers, each verified, at most one of each kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.errors import HostileInputError, IntegrityError
from pipeline.model.attachment import load_referrer
from pipeline.model.attestation import MAX_BUNDLE_BYTES, PREDICATE_TYPES
from pipeline.model.digest import digest_of
from pipeline.model.oci import SIGSTORE_BUNDLE, Descriptor
from pipeline.model.reference import Reference
from pipeline.model.stages import Attached, AttestationKind
from pipeline.ports import Attested, BundleVerifier, PullRegistry

KINDS: tuple[AttestationKind, ...] = tuple(PREDICATE_TYPES)
MAX_REFERRERS = 64
_KIND_OF = {predicate_type: kind for kind, predicate_type in PREDICATE_TYPES.items()}


@dataclass(frozen=True)
class FoundAttestation:
    """A verified attestation and the referrer manifest that carries it."""

    referrer: Descriptor
    attested: Attested


def fetch_attestations(
    pinned: Reference, registry: PullRegistry, verifier: BundleVerifier
) -> Mapping[AttestationKind, FoundAttestation]:
    """Every attestation of a kind that we make; IntegrityError when one does not verify, or two are of one kind.

    Bundles with other predicate types are somebody else's and are left alone.
    """
    found: dict[AttestationKind, FoundAttestation] = {}
    for descriptor in _bundle_referrers(pinned, registry):
        predicate_type, bundle = _fetch_bundle(pinned, descriptor, registry)
        kind = _KIND_OF.get(predicate_type)
        if kind is None:
            continue
        if kind in found:
            raise IntegrityError(
                f"two {kind} attestations on one digest: {found[kind].referrer.digest} and {descriptor.digest}",
                where=str(pinned),
                remedy="remove the one that this release did not make",
            )
        attested = verify_bundle(bundle, kind, pinned, f"{pinned}, {descriptor.digest}", verifier)
        found[kind] = FoundAttestation(descriptor, attested)
    return found


def verify_bundle(
    bundle: bytes, kind: AttestationKind, pinned: Reference, place: str, verifier: BundleVerifier
) -> Attested:
    """Verify a bundle of a kind about a pinned image; IntegrityError names `place` and the step that does not hold."""
    try:
        return verifier.verify(bundle, subject_digest=pinned.digest or "", predicate_type=PREDICATE_TYPES[kind])
    except IntegrityError as error:
        raise IntegrityError(
            f"the {kind} attestation does not verify: {error.what}",
            where=f"{place}: {error.where}",
            remedy=error.remedy or "do not use it: somebody else made it, or it was changed",
        ) from error


def require_all(found: Mapping[AttestationKind, FoundAttestation], pinned: Reference) -> None:
    """IntegrityError that names every kind that is missing."""
    missing = [kind for kind in KINDS if kind not in found]
    if missing:
        raise IntegrityError(
            f"attestations are missing: {', '.join(missing)}", where=str(pinned), remedy="run: nox -s publish"
        )


def verify_referrer_ways(pinned: Reference, registry: PullRegistry) -> None:
    """IntegrityError when a registry lists referrers by API and by tag, and not the same ones.

    Clients read one list or the other: digest, artifact type and annotations must not depend on which.
    """
    ways = registry.fetch_referrer_ways(pinned)
    if ways.api is None or ways.tag is None:
        return
    api, tag = ({one.digest: (one.artifact_type, one.annotations or {}) for one in way} for way in (ways.api, ways.tag))
    different = sorted(digest for digest in api.keys() | tag.keys() if api.get(digest) != tag.get(digest))
    if different:
        raise IntegrityError(
            f"the referrers API and the referrers tag differ in {', '.join(different)}",
            where=str(pinned),
            remedy="this registry has the API: remove the tag for referrers, then publish again",
        )


def attached(kind: AttestationKind, found: FoundAttestation) -> Attached:
    """The record of an attestation."""
    return Attached(
        kind=kind,
        predicate_type=found.attested.predicate_type,
        referrer_digest=found.referrer.digest,
        bundle_digest=digest_of(found.attested.bundle),
        bundle_bytes=len(found.attested.bundle),
    )


def _bundle_referrers(pinned: Reference, registry: PullRegistry) -> list[Descriptor]:
    referrers = [d for d in registry.fetch_referrers(pinned) if d.artifact_type == SIGSTORE_BUNDLE]
    if len(referrers) > MAX_REFERRERS:
        raise HostileInputError(
            f"{len(referrers)} bundles on one digest; the limit is {MAX_REFERRERS}", where=str(pinned)
        )
    return referrers


def _fetch_bundle(pinned: Reference, descriptor: Descriptor, registry: PullRegistry) -> tuple[str, bytes]:
    manifest = registry.fetch_manifest(pinned.with_digest(descriptor.digest))
    referrer = load_referrer(manifest, pinned.digest or "")
    if referrer.bundle.size > MAX_BUNDLE_BYTES:
        raise HostileInputError(f"a bundle of {referrer.bundle.size} bytes", where=f"{pinned}, {descriptor.digest}")
    return referrer.predicate_type, b"".join(registry.fetch_blob(pinned, referrer.bundle))
