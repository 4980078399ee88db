"""Attacks that only real cryptography can be put to: the parts of the trusted root, a log proof, a certificate.

Each is told as what somebody changed, and where the verifier noticed.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from rfc3161_client import decode_timestamp_response

from pipeline.adapters.keyless import KeylessVerifier
from pipeline.derive import statements
from pipeline.embedded.sigstore.service import Clocks, utc_now
from pipeline.errors import ConfigError, IntegrityError
from pipeline.model.attestation import Step
from tests.fakes.private_sigstore import DIGEST, IMAGE, OTHER_IMAGE, SIGN, Party, running

STATEMENT = statements.make_sign_statement(IMAGE)
OTHER_STATEMENT = statements.make_sign_statement(OTHER_IMAGE)
LONG_AFTER = Clocks(witnesses=lambda: utc_now() + timedelta(hours=1))
LONG_BEFORE = Clocks(witnesses=lambda: utc_now() - timedelta(hours=1))


@dataclass(frozen=True)
class Scene:
    """A Sigstore, a foreign one, and a bundle of the first whose proof has several hashes."""

    own: Party
    foreign: Party
    bundle: bytes

    def failed_step(self, bundle: bytes, root: bytes | None = None) -> str:
        with pytest.raises(IntegrityError) as caught:
            self.own.verifier(root=root).verify(bundle, subject_digest=DIGEST, predicate_type=SIGN)
        return caught.value.where


@pytest.fixture(scope="module", params=[1, 2], ids=["rekor-v1", "rekor-v2"])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    path = tmp_path_factory.mktemp("sigstore")
    with ExitStack() as stack:
        own = stack.enter_context(running(path / "own", request.param))
        foreign = stack.enter_context(running(path / "foreign", request.param))
        for _ in range(5):
            own.signer().sign(OTHER_STATEMENT)
        yield Scene(own, foreign, own.signer().sign(STATEMENT))


def changed(bundle: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    document = json.loads(bundle)
    change(document)
    return json.dumps(document).encode()


def entry(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["verificationMaterial"]["tlogEntries"][0]
    return found


def test_the_untouched_bundle_verifies(scene: Scene) -> None:
    assert scene.own.verifier().verify(scene.bundle, subject_digest=DIGEST, predicate_type=SIGN)


@pytest.mark.parametrize(
    ("part", "step"),
    [
        ("timestampAuthorities", Step.TIMESTAMP),
        ("certificateAuthorities", Step.CERTIFICATE),
        ("ctlogs", Step.CERTIFICATE),
        ("tlogs", Step.LOG),
    ],
)
@pytest.mark.parametrize("emptied", [True, False], ids=["emptied", "replaced"])
def test_one_part_of_the_root(scene: Scene, part: str, step: Step, emptied: bool) -> None:
    root, foreign = json.loads(scene.own.root), json.loads(scene.foreign.root)
    root[part] = [] if emptied else foreign[part]
    found = scene.failed_step(scene.bundle, json.dumps(root).encode())
    # Without any authority or log the library refuses the root itself, before it looks at the bundle.
    assert found in ({step, Step.CERTIFICATE} if emptied else {step})


def test_a_root_that_is_none(scene: Scene) -> None:
    assert scene.failed_step(scene.bundle, b'{"mediaType":"x"}') == "the trusted root"


def test_a_checkpoint_of_another_size(scene: Scene) -> None:
    def change(document: dict[str, Any]) -> None:
        proof = entry(document)["inclusionProof"]
        note = proof["checkpoint"]["envelope"]
        proof["checkpoint"]["envelope"] = note.replace(f"\n{proof['treeSize']}\n", f"\n{int(proof['treeSize']) + 1}\n")
        assert proof["checkpoint"]["envelope"] != note

    assert scene.failed_step(changed(scene.bundle, change)) == Step.LOG


def test_the_checkpoint_of_a_later_tree(scene: Scene) -> None:
    later = entry(json.loads(scene.own.signer().sign(STATEMENT)))["inclusionProof"]["checkpoint"]
    bundle = changed(scene.bundle, lambda d: entry(d)["inclusionProof"].update(checkpoint=later))
    assert scene.failed_step(bundle) == Step.LOG


def test_a_checkpoint_that_nobody_signed(scene: Scene) -> None:
    def change(document: dict[str, Any]) -> None:
        checkpoint = entry(document)["inclusionProof"]["checkpoint"]
        checkpoint["envelope"] = checkpoint["envelope"].partition("\u2014")[0] + "\u2014 nobody AAAAAAAAAAAA\n"

    assert scene.failed_step(changed(scene.bundle, change)) == Step.LOG


@pytest.mark.parametrize("field", ["hashes", "rootHash"])
def test_a_hash_of_the_inclusion_proof(scene: Scene, field: str) -> None:
    def change(document: dict[str, Any]) -> None:
        proof, wrong = entry(document)["inclusionProof"], base64.b64encode(b"x" * 32).decode()
        assert proof["hashes"], "a proof without hashes proves nothing about this attack"
        proof[field] = [wrong, *proof["hashes"][1:]] if field == "hashes" else wrong

    assert scene.failed_step(changed(scene.bundle, change)) == Step.LOG


@pytest.mark.parametrize(("field", "step"), [("logIndex", -1), ("treeSize", 1)])
def test_a_number_of_the_inclusion_proof(scene: Scene, field: str, step: int) -> None:
    def change(document: dict[str, Any]) -> None:
        proof = entry(document)["inclusionProof"]
        proof[field] = str(int(proof[field]) + step)

    assert scene.failed_step(changed(scene.bundle, change)) == Step.LOG


@pytest.mark.parametrize("rekor", [1, 2])
@pytest.mark.parametrize("claimed", [3, 4])
def test_a_proof_for_a_tree_of_another_size(tmp_path: Path, rekor: Any, claimed: int) -> None:
    """The first of three leaves has a path of the same length in a tree of four."""
    with running(tmp_path, rekor) as own:
        first, *_ = [own.signer().sign(STATEMENT) for _ in range(3)]
        log = own.service.services.log(rekor)

        def later(document: dict[str, Any]) -> None:
            entry(document)["inclusionProof"] = {
                "logIndex": "0",
                "treeSize": str(claimed),
                "rootHash": base64.b64encode(log.tree.root()).decode(),
                "hashes": [base64.b64encode(node).decode() for node in log.tree.path(0, 3)],
                "checkpoint": {"envelope": log.checkpoint()},
            }

        bundle = changed(first, later)
        if claimed == 3:
            assert own.verifier().verify(bundle, subject_digest=DIGEST, predicate_type=SIGN)
            return
        with pytest.raises(IntegrityError) as caught:
            own.verifier().verify(bundle, subject_digest=DIGEST, predicate_type=SIGN)
    assert caught.value.where == Step.LOG


@pytest.mark.parametrize("field", ["checkpoint", "hashes"])
def test_an_inclusion_proof_that_lacks_something(scene: Scene, field: str) -> None:
    bundle = changed(scene.bundle, lambda d: entry(d)["inclusionProof"].pop(field))
    assert scene.failed_step(bundle) in {Step.BUNDLE, Step.LOG}


def test_a_timestamp_of_the_foreign_authority(scene: Scene) -> None:
    foreign = json.loads(scene.foreign.signer().sign(STATEMENT))["verificationMaterial"]["timestampVerificationData"]
    bundle = changed(scene.bundle, lambda d: d["verificationMaterial"].update(timestampVerificationData=foreign))
    assert scene.failed_step(bundle) == Step.TIMESTAMP


def test_a_valid_timestamp_does_not_excuse_another(scene: Scene) -> None:
    foreign = json.loads(scene.foreign.signer().sign(STATEMENT))["verificationMaterial"]["timestampVerificationData"]

    def change(document: dict[str, Any]) -> None:
        timestamps = document["verificationMaterial"]["timestampVerificationData"]["rfc3161Timestamps"]
        timestamps.extend(foreign["rfc3161Timestamps"])

    assert scene.failed_step(changed(scene.bundle, change)) == Step.TIMESTAMP


def test_a_byte_of_what_the_timestamp_says_or_of_its_signature(scene: Scene) -> None:
    stamps = json.loads(scene.bundle)["verificationMaterial"]["timestampVerificationData"]["rfc3161Timestamps"]
    raw = base64.b64decode(stamps[0]["signedTimestamp"])
    said = raw.index(decode_timestamp_response(raw).tst_info.message_imprint.message)
    for offset in (*range(said - 40, said + 80, 5), *range(len(raw) - 60, len(raw), 5)):
        wrong = bytearray(raw)
        wrong[offset] ^= 0x10
        stamp = {"signedTimestamp": base64.b64encode(wrong).decode()}
        bundle = changed(
            scene.bundle,
            lambda d, stamp=stamp: d["verificationMaterial"]["timestampVerificationData"].update(
                rfc3161Timestamps=[stamp]
            ),
        )
        assert scene.failed_step(bundle) in {Step.TIMESTAMP, Step.BUNDLE}


def test_a_certificate_of_the_foreign_authority(scene: Scene) -> None:
    assert scene.failed_step(scene.foreign.signer().sign(STATEMENT)) == Step.TIMESTAMP
    root, foreign = json.loads(scene.own.root), json.loads(scene.foreign.root)
    for part in ("timestampAuthorities", "tlogs", "ctlogs"):
        root[part] = foreign[part]
    assert scene.failed_step(scene.foreign.signer().sign(STATEMENT), json.dumps(root).encode()) == Step.CERTIFICATE


@pytest.mark.parametrize("clocks", [LONG_AFTER, LONG_BEFORE], ids=["expired", "not-yet-valid"])
@pytest.mark.parametrize("rekor", [1, 2])
def test_a_certificate_outside_the_time_of_the_log(tmp_path: Path, rekor: Any, clocks: Clocks) -> None:
    with running(tmp_path, rekor, clocks) as late:
        bundle = late.signer().sign(STATEMENT)
        with pytest.raises(IntegrityError) as caught:
            late.verifier().verify(bundle, subject_digest=DIGEST, predicate_type=SIGN)
    assert caught.value.where == Step.CERTIFICATE


@pytest.mark.parametrize("field", ["integratedTime", "inclusionPromise"])
def test_the_promise_of_rekor_version_1(tmp_path: Path, field: str) -> None:
    with running(tmp_path, 1) as own:
        first, second = own.signer().sign(STATEMENT), own.signer().sign(STATEMENT)

        def change(document: dict[str, Any]) -> None:
            if field == "integratedTime":
                entry(document)[field] = str(int(entry(document)[field]) + 1)
            else:
                entry(document)[field] = entry(json.loads(second))[field]

        with pytest.raises(IntegrityError) as caught:
            own.verifier().verify(changed(first, change), subject_digest=DIGEST, predicate_type=SIGN)
    assert caught.value.where == Step.LOG


@pytest.mark.parametrize(("subject", "issuer"), [("", "https://issuer.test"), ("https://subject.test", "")])
def test_an_expectation_that_anybody_meets_is_refused(subject: str, issuer: str) -> None:
    with pytest.raises(ConfigError):
        KeylessVerifier(b"{}", subject, issuer)
