"""A Sigstore bundle as an OCI referrer in cosign's layout: made, and read back. Pure: bytes in, bytes out.

One manifest a bundle: artifact type and single layer are the bundle's media type, the config is the empty one, the
subject is the image. https://github.com/sigstore/cosign/blob/main/specs/BUNDLE_SPEC.md
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pipeline.errors import HostileInputError, IntegrityError
from pipeline.model.attestation import MAX_BUNDLE_BYTES
from pipeline.model.digest import digest_of
from pipeline.model.oci import OCI_EMPTY, OCI_MANIFEST, SIGSTORE_BUNDLE, Descriptor, Manifest
from pipeline.model.record import canonical_json

EMPTY_CONFIG = b"{}"
CREATED = "org.opencontainers.image.created"
CONTENT = "dev.sigstore.bundle.content"
PREDICATE_TYPE = "dev.sigstore.bundle.predicateType"
DSSE = "dsse-envelope"

_TIME = re.compile(r"20\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\dZ")


@dataclass(frozen=True)
class Referrer:
    """What a referrer's annotations say of its bundle. The bundle itself is the truth; these only help to find it."""

    subject_digest: str
    predicate_type: str
    signed_at: str
    bundle: Descriptor


def make_referrer(subject: Descriptor, bundle: bytes, predicate_type: str, signed_at: str) -> Manifest:
    """The referrer manifest of a bundle (JSON bytes) about `subject`.

    `signed_at` is the bundle's signed time, `YYYY-MM-DDTHH:MM:SSZ`: no clock is read, so the manifest is the same every
    time. Push `EMPTY_CONFIG` and `bundle` as blobs first. HostileInputError for an empty or too large bundle, or a time
    in another form.
    """
    if not 0 < len(bundle) <= MAX_BUNDLE_BYTES:
        raise HostileInputError(
            f"a bundle of {len(bundle)} bytes; the limit is {MAX_BUNDLE_BYTES}", where=subject.digest
        )
    if _TIME.fullmatch(signed_at) is None:
        raise HostileInputError(f"not a signed time in UTC to the second: {signed_at[:40]!r}", where=subject.digest)
    document = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "artifactType": SIGSTORE_BUNDLE,
        "config": _descriptor(OCI_EMPTY, digest_of(EMPTY_CONFIG), len(EMPTY_CONFIG)),
        "layers": [_descriptor(SIGSTORE_BUNDLE, digest_of(bundle), len(bundle))],
        "subject": _descriptor(subject.media_type, subject.digest, subject.size),
        "annotations": {CREATED: signed_at, CONTENT: DSSE, PREDICATE_TYPE: predicate_type},
    }
    return Manifest(canonical_json(document), OCI_MANIFEST)


def is_bundle(descriptor: Descriptor) -> bool:
    """Whether a referrer's descriptor says that it is a Sigstore bundle."""
    return descriptor.artifact_type == SIGSTORE_BUNDLE


def load_referrer(manifest: Manifest, subject_digest: str) -> Referrer:
    """Read a referrer manifest back; its `bundle` is the blob to fetch.

    IntegrityError when it is about another subject, HostileInputError when it is not in cosign's layout.
    """
    view, where = manifest.view, manifest.digest
    if view.subject is None or view.subject.digest != subject_digest:
        raise IntegrityError(f"a referrer that is not about {subject_digest}", where=where)
    annotations = view.annotations or {}
    fits = {
        "artifactType": view.artifact_type == SIGSTORE_BUNDLE,
        "config": view.config.media_type == OCI_EMPTY and view.config.digest == digest_of(EMPTY_CONFIG),
        "layers": len(view.layers) == 1 and view.layers[0].media_type == SIGSTORE_BUNDLE,
        CONTENT: annotations.get(CONTENT) == DSSE,
        PREDICATE_TYPE: bool(annotations.get(PREDICATE_TYPE)),
        CREATED: _TIME.fullmatch(annotations.get(CREATED, "")) is not None,
    }
    if wrong := [name for name, is_right in fits.items() if not is_right]:
        raise HostileInputError(f"not a Sigstore bundle in cosign's layout: {', '.join(wrong)}", where=where)
    if not 0 < view.layers[0].size <= MAX_BUNDLE_BYTES:
        raise HostileInputError(f"a bundle of {view.layers[0].size} bytes", where=where)
    return Referrer(subject_digest, annotations[PREDICATE_TYPE], annotations[CREATED], view.layers[0])


def _descriptor(media_type: str, digest: str, size: int) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": digest, "size": size}
