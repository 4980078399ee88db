"""The contract of ports.Signer and ports.BundleVerifier: the simulator, and the private Sigstore with each log."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pipeline.derive import statements
from pipeline.errors import HostileInputError, IntegrityError
from pipeline.model.attestation import CYCLONEDX_BOM, MAX_BUNDLE_BYTES, MAX_STATEMENT_BYTES, Step
from pipeline.model.record import canonical_json
from pipeline.ports import BundleVerifier, Signer
from tests.fakes.private_sigstore import DIGEST, IMAGE, OTHER_DIGEST, OTHER_IMAGE, SIGN, running
from tests.fakes.signing import ISSUER, SUBJECT, FakeSigner, FakeSigstore, FakeVerifier

STRANGER = "https://local-sigstore.test/stranger"
PRODUCTION = "https://github.com/akseljoonas/mimo-openenv-software/.github/workflows/release.yml@refs/heads/main"
PRODUCTION_ISSUER = "https://token.actions.githubusercontent.com"
STATEMENT = statements.make_sign_statement(IMAGE)
BOM = statements.make_bom_statement(IMAGE, b'{"bomFormat":"CycloneDX","components":[]}')
OTHER_STATEMENT = statements.make_sign_statement(OTHER_IMAGE)


@dataclass(frozen=True)
class Parties:
    """How to sign as somebody, and how to verify expecting somebody."""

    subject: str
    issuer: str
    signer: Callable[[str], Signer]
    verifier: Callable[[str, str], BundleVerifier]
    foreign: BundleVerifier

    def sign(self, statement: bytes) -> bytes:
        return self.signer(self.subject).sign(statement)

    def failed_step(self, bundle: bytes, digest: str = DIGEST, predicate_type: str = SIGN) -> str:
        """Where verification of a bundle fails."""
        with pytest.raises(IntegrityError) as caught:
            self.verifier(self.subject, self.issuer).verify(
                bundle, subject_digest=digest, predicate_type=predicate_type
            )
        return caught.value.where


def fake_parties() -> Parties:
    sigstore = FakeSigstore()
    return Parties(
        SUBJECT,
        ISSUER,
        lambda subject: FakeSigner(sigstore, subject),
        lambda subject, issuer: FakeVerifier(sigstore, subject, issuer),
        FakeVerifier(FakeSigstore("foreign")),
    )


@pytest.fixture(scope="module", params=["fake", "rekor-v1", "rekor-v2"])
def parties(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parties]:
    if request.param == "fake":
        yield fake_parties()
        return
    rekor = 1 if request.param == "rekor-v1" else 2
    path = tmp_path_factory.mktemp("sigstore")
    with running(path / "own", rekor) as own, running(path / "foreign", rekor) as foreign:
        own.signer().sign(OTHER_STATEMENT)  # so that proofs are longer than nothing
        yield Parties(
            SUBJECT,
            own.issuer,
            own.signer,
            lambda subject, issuer: own.verifier(subject, issuer),
            own.verifier(root=foreign.root),
        )


def test_importing_is_cheap_and_the_simulator_needs_no_cryptography() -> None:
    code = "import sys, pipeline.adapters.keyless, tests.fakes.signing as fake\n"
    code += "fake.FakeSigner(fake.FakeSigstore()).sign(sys.stdin.buffer.read())\n"
    code += "print(sorted({'sigstore', 'cryptography', 'requests'} & set(sys.modules)))"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], input=STATEMENT, capture_output=True, check=True, cwd=root)
    assert done.stdout.strip() == b"[]"


def changed(bundle: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    document = json.loads(bundle)
    change(document)
    return json.dumps(document).encode()


def material(bundle: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bundle)["verificationMaterial"]
    return found


def test_what_was_signed_verifies(parties: Parties) -> None:
    bundle = parties.sign(BOM)
    attested = parties.verifier(parties.subject, parties.issuer).verify(
        bundle, subject_digest=DIGEST, predicate_type=CYCLONEDX_BOM
    )
    assert attested.predicate == {"bomFormat": "CycloneDX", "components": []}
    assert (attested.subject_digest, attested.predicate_type) == (DIGEST, CYCLONEDX_BOM)
    assert (attested.identity, attested.issuer) == (parties.subject, parties.issuer)
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", attested.signed_at)
    assert attested.bundle == bundle


def joint_statement(*digests: str) -> bytes:
    subjects = [{"name": "registry.test/image", "digest": {"sha256": digest[7:]}} for digest in digests]
    return canonical_json({**json.loads(STATEMENT), "subject": subjects})


def test_a_statement_about_several_digests_is_about_exactly_these_in_their_order(parties: Parties) -> None:
    verifier = parties.verifier(parties.subject, parties.issuer)
    bundle = parties.sign(joint_statement(DIGEST, OTHER_DIGEST))
    attested = verifier.verify_joint(bundle, subject_digests=(DIGEST, OTHER_DIGEST), predicate_type=SIGN)
    assert (attested.subject_digest, attested.bundle) == (DIGEST, bundle)
    for others in ((DIGEST,), (OTHER_DIGEST, DIGEST), (DIGEST, OTHER_DIGEST, DIGEST), ()):
        with pytest.raises(IntegrityError) as caught:
            verifier.verify_joint(bundle, subject_digests=others, predicate_type=SIGN)
        assert caught.value.where == Step.SUBJECT
    assert parties.failed_step(bundle) == Step.SUBJECT, "it is no attestation of one of them"


def test_the_signed_bytes_are_the_statement(parties: Parties) -> None:
    envelope = json.loads(parties.sign(STATEMENT))["dsseEnvelope"]
    assert base64.b64decode(envelope["payload"]) == STATEMENT


def test_only_a_statement_is_signed(parties: Parties) -> None:
    with pytest.raises(IntegrityError):
        parties.sign(b'{"_type":"something else"}')


def test_too_large_a_statement_is_refused_before_signing(parties: Parties) -> None:
    with pytest.raises(HostileInputError):
        parties.sign(STATEMENT + b" " * MAX_STATEMENT_BYTES)


def test_an_attestation_of_another_image(parties: Parties) -> None:
    assert parties.failed_step(parties.sign(OTHER_STATEMENT)) == Step.SUBJECT


def test_another_artifact_than_was_signed(parties: Parties) -> None:
    assert parties.failed_step(parties.sign(STATEMENT), digest=OTHER_DIGEST) == Step.SUBJECT


def test_another_predicate_type(parties: Parties) -> None:
    assert parties.failed_step(parties.sign(STATEMENT), predicate_type=CYCLONEDX_BOM) == Step.PREDICATE


@pytest.mark.parametrize("offset", [0, 40, -3])
def test_a_payload_byte(parties: Parties, offset: int) -> None:
    def change(document: dict[str, Any]) -> None:
        payload = bytearray(base64.b64decode(document["dsseEnvelope"]["payload"]))
        payload[offset] ^= 1
        document["dsseEnvelope"]["payload"] = base64.b64encode(payload).decode()

    assert parties.failed_step(changed(parties.sign(STATEMENT), change)) == Step.SIGNATURE


@pytest.mark.parametrize(("old", "new"), [(DIGEST[7:], OTHER_DIGEST[7:]), (SIGN, CYCLONEDX_BOM)])
def test_a_rewritten_subject_or_predicate_type(parties: Parties, old: str, new: str) -> None:
    def change(document: dict[str, Any]) -> None:
        payload = base64.b64decode(document["dsseEnvelope"]["payload"]).replace(old.encode(), new.encode())
        document["dsseEnvelope"]["payload"] = base64.b64encode(payload).decode()

    assert parties.failed_step(changed(parties.sign(STATEMENT), change)) == Step.SIGNATURE


def test_another_payload_type(parties: Parties) -> None:
    bundle = changed(parties.sign(STATEMENT), lambda d: d["dsseEnvelope"].update(payloadType="application/json"))
    assert parties.failed_step(bundle) == Step.ENVELOPE


def test_a_second_signature(parties: Parties) -> None:
    bundle = changed(parties.sign(STATEMENT), lambda d: d["dsseEnvelope"]["signatures"].append({"sig": "AA=="}))
    assert parties.failed_step(bundle) == Step.ENVELOPE


def test_a_message_signature_where_an_attestation_is_wanted(parties: Parties) -> None:
    def change(document: dict[str, Any]) -> None:
        envelope = document.pop("dsseEnvelope")
        digest = {"algorithm": "SHA2_256", "digest": base64.b64encode(bytes.fromhex(DIGEST[7:])).decode()}
        document["messageSignature"] = {"messageDigest": digest, "signature": envelope["signatures"][0]["sig"]}

    assert parties.failed_step(changed(parties.sign(STATEMENT), change)) == Step.ENVELOPE


@pytest.mark.parametrize("emptied", [True, False])
def test_a_dropped_timestamp(parties: Parties, emptied: bool) -> None:
    def change(document: dict[str, Any]) -> None:
        if emptied:
            document["verificationMaterial"]["timestampVerificationData"]["rfc3161Timestamps"] = []
        else:
            del document["verificationMaterial"]["timestampVerificationData"]

    assert parties.failed_step(changed(parties.sign(STATEMENT), change)) == Step.TIMESTAMP


def test_the_timestamp_of_another_signature(parties: Parties) -> None:
    other = material(parties.sign(STATEMENT))["timestampVerificationData"]
    bundle = changed(
        parties.sign(OTHER_STATEMENT), lambda d: d["verificationMaterial"].update(timestampVerificationData=other)
    )
    assert parties.failed_step(bundle, digest=OTHER_DIGEST) == Step.TIMESTAMP


def test_the_log_entry_of_another_signature(parties: Parties) -> None:
    other = material(parties.sign(OTHER_STATEMENT))["tlogEntries"]
    bundle = changed(parties.sign(STATEMENT), lambda d: d["verificationMaterial"].update(tlogEntries=other))
    assert parties.failed_step(bundle) == Step.LOG


@pytest.mark.parametrize("entries", [0, 2])
def test_not_exactly_one_log_entry(parties: Parties, entries: int) -> None:
    def change(document: dict[str, Any]) -> None:
        document["verificationMaterial"]["tlogEntries"] *= entries

    assert parties.failed_step(changed(parties.sign(STATEMENT), change)) == Step.LOG


def test_the_certificate_of_another_signature(parties: Parties) -> None:
    other = material(parties.signer(STRANGER).sign(STATEMENT))["certificate"]
    bundle = changed(parties.sign(STATEMENT), lambda d: d["verificationMaterial"].update(certificate=other))
    assert parties.failed_step(bundle) == Step.SIGNATURE


def test_another_identity(parties: Parties) -> None:
    assert parties.failed_step(parties.signer(STRANGER).sign(STATEMENT)) == Step.IDENTITY


def test_an_identity_that_begins_with_the_expected_one(parties: Parties) -> None:
    assert parties.failed_step(parties.signer(parties.subject + "/x").sign(STATEMENT)) == Step.IDENTITY


@pytest.mark.parametrize(
    ("subject", "issuer"),
    [(SUBJECT, PRODUCTION_ISSUER), (PRODUCTION, PRODUCTION_ISSUER), (STRANGER, PRODUCTION_ISSUER)],
)
def test_the_local_identity_never_satisfies_another_issuer(parties: Parties, subject: str, issuer: str) -> None:
    for signer in (parties.signer(parties.subject), parties.signer(subject)):
        bundle = signer.sign(STATEMENT)
        with pytest.raises(IntegrityError) as caught:
            parties.verifier(subject, issuer).verify(bundle, subject_digest=DIGEST, predicate_type=SIGN)
        assert caught.value.where == Step.IDENTITY


def test_another_root(parties: Parties) -> None:
    with pytest.raises(IntegrityError) as caught:
        parties.foreign.verify(parties.sign(STATEMENT), subject_digest=DIGEST, predicate_type=SIGN)
    assert caught.value.where == Step.TIMESTAMP  # the first step that needs the root


@pytest.mark.parametrize(
    "bundle",
    [
        b"",
        b"[]",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json"}',
        b" " * (MAX_BUNDLE_BYTES + 1),
    ],
    ids=["empty", "list", "not-text", "deep", "hollow", "large"],
)
def test_what_is_no_bundle(parties: Parties, bundle: bytes) -> None:
    assert parties.failed_step(bundle) == Step.BUNDLE


def test_another_media_type(parties: Parties) -> None:
    old = "application/vnd.dev.sigstore.bundle+json;version=0.2"
    bundle = changed(parties.sign(STATEMENT), lambda d: d.update(mediaType=old))
    assert parties.failed_step(bundle) == Step.BUNDLE


def test_a_key_that_occurs_twice(parties: Parties) -> None:
    bundle = parties.sign(STATEMENT)
    assert parties.failed_step(b'{"dsseEnvelope":{},' + bundle[1:]) == Step.BUNDLE
