"""Referrer manifests in cosign's layout, made and read back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipeline.errors import HostileInputError, IntegrityError
from pipeline.model.attachment import EMPTY_CONFIG, Referrer, is_bundle, load_referrer, make_referrer
from pipeline.model.attestation import MAX_BUNDLE_BYTES
from pipeline.model.digest import digest_of
from pipeline.model.oci import OCI_MANIFEST, Descriptor, Manifest

SUBJECT = Descriptor(mediaType=OCI_MANIFEST, digest=digest_of(b"image"), size=5, annotations={"not": "copied"})
BUNDLE = b'{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json"}'
PREDICATE = "https://slsa.dev/provenance/v1"
SIGNED_AT = "2026-10-12T08:00:00Z"
MADE = make_referrer(SUBJECT, BUNDLE, PREDICATE, SIGNED_AT)


def test_the_layout_is_cosigns() -> None:
    bundle_type = "application/vnd.dev.sigstore.bundle.v0.3+json"
    assert json.loads(MADE.raw) == {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "artifactType": bundle_type,
        "config": {
            "mediaType": "application/vnd.oci.empty.v1+json",
            "digest": "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
            "size": 2,
        },
        "layers": [{"mediaType": bundle_type, "digest": digest_of(BUNDLE), "size": len(BUNDLE)}],
        "subject": {"mediaType": OCI_MANIFEST, "digest": SUBJECT.digest, "size": 5},
        "annotations": {
            "org.opencontainers.image.created": SIGNED_AT,
            "dev.sigstore.bundle.content": "dsse-envelope",
            "dev.sigstore.bundle.predicateType": PREDICATE,
        },
    }
    assert digest_of(EMPTY_CONFIG) == MADE.view.config.digest


def test_it_is_the_same_every_time() -> None:
    assert make_referrer(SUBJECT, BUNDLE, PREDICATE, SIGNED_AT).digest == MADE.digest


def test_it_reads_back() -> None:
    layer = MADE.view.layers[0]
    assert load_referrer(MADE, SUBJECT.digest) == Referrer(SUBJECT.digest, PREDICATE, SIGNED_AT, layer)


def test_another_subject_is_an_integrity_error() -> None:
    with pytest.raises(IntegrityError, match="not about"):
        load_referrer(MADE, digest_of(b"another image"))


def changed(path: tuple[str | int, ...], value: Any) -> Manifest:
    document = json.loads(MADE.raw)
    place = document
    for part in path[:-1]:
        place = place[part]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return Manifest(json.dumps(document).encode(), OCI_MANIFEST)


CHANGES: list[tuple[tuple[str | int, ...], Any, str]] = [
    (("artifactType",), "application/x", "artifactType"),
    (("artifactType",), None, "artifactType"),
    (("config", "mediaType"), "application/x", "config"),
    (("config", "digest"), digest_of(b"x"), "config"),
    (("layers",), [], "layers"),
    (("layers",), json.loads(MADE.raw)["layers"] * 2, "layers"),
    (("layers", 0, "mediaType"), "application/x", "layers"),
    (("annotations",), None, "created"),
    (("annotations", "dev.sigstore.bundle.content"), "message-signature", "content"),
    (("annotations", "dev.sigstore.bundle.predicateType"), "", "predicateType"),
    (("annotations", "org.opencontainers.image.created"), "yesterday", "created"),
    (("layers", 0, "size"), 0, "bundle of 0 bytes"),
    (("layers", 0, "size"), MAX_BUNDLE_BYTES + 1, "bytes"),
]


@pytest.mark.parametrize(("path", "value", "what"), CHANGES)
def test_another_layout_is_refused_by_name(path: tuple[str | int, ...], value: Any, what: str) -> None:
    with pytest.raises(HostileInputError, match=what):
        load_referrer(changed(path, value), SUBJECT.digest)


def test_a_missing_subject_is_refused() -> None:
    with pytest.raises(IntegrityError):
        load_referrer(changed(("subject",), None), SUBJECT.digest)


@pytest.mark.parametrize(
    "time", ["2026-10-12", "2026-10-12T08:00:00+00:00", "2026-10-12T08:00:00.5Z", "2026-13-01T00:00:00Z", ""]
)
def test_a_time_is_utc_to_the_second(time: str) -> None:
    with pytest.raises(HostileInputError, match="UTC"):
        make_referrer(SUBJECT, BUNDLE, PREDICATE, time)


@pytest.mark.parametrize("size", [0, MAX_BUNDLE_BYTES + 1])
def test_a_bundle_has_a_size(size: int) -> None:
    with pytest.raises(HostileInputError, match="bundle of"):
        make_referrer(SUBJECT, bytes(size), PREDICATE, SIGNED_AT)


def test_only_bundles_are_bundles() -> None:
    assert is_bundle(SUBJECT.model_copy(update={"artifact_type": "application/vnd.dev.sigstore.bundle.v0.3+json"}))
    assert not is_bundle(SUBJECT)
