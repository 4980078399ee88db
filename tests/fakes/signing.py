"""A simulator of keyless signing for tests of stages: the same ports, the same bundle outline, no cryptography.

A `FakeSigstore` is a root of trust. What it seals only it can check: its seal is a hash with its own name, so bundles
of another one, changed bytes, swapped entries and dropped timestamps fail at the same step as with the real verifier.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.adapters.keyless.bundle import Outline, load_outline
from pipeline.derive.statements import load_joint_statement
from pipeline.errors import HostileInputError, IntegrityError, ServiceError
from pipeline.model.attestation import MAX_STATEMENT_BYTES, PAYLOAD_TYPE, Step
from pipeline.model.oci import SIGSTORE_BUNDLE
from pipeline.ports import Attested

SUBJECT = "https://local-sigstore.test/publisher"
ISSUER = "http://127.0.0.1:5712/oidc"
SIGNED_AT = "2026-10-12T08:00:00Z"


@dataclass
class FakeSigstore:
    """One root of trust; `down` makes its services refuse, `log` holds what was signed."""

    name: str = "local"
    signed_at: str = SIGNED_AT
    down: bool = False
    log: list[bytes] = field(default_factory=list)

    def seal(self, what: str, data: bytes) -> bytes:
        """What only this root could have made of these bytes."""
        return hashlib.sha256(f"{self.name}:{what}:".encode() + data).digest()


@dataclass(frozen=True)
class FakeSigner:
    """ports.Signer."""

    sigstore: FakeSigstore
    subject: str = SUBJECT
    issuer: str = ISSUER

    def sign(self, statement: bytes) -> bytes:
        """A bundle that FakeVerifier accepts."""
        if len(statement) > MAX_STATEMENT_BYTES:
            raise HostileInputError(f"a statement of {len(statement)} bytes; the limit is {MAX_STATEMENT_BYTES}")
        try:
            load_joint_statement(statement, "what is to be signed")
        except HostileInputError as error:
            raise IntegrityError("what is to be signed is not an in-toto statement") from error
        if self.sigstore.down:
            raise ServiceError("signing failed: the log is down", where="log entry")
        self.sigstore.log.append(statement)
        return json.dumps(self._bundle(statement)).encode()

    def _bundle(self, statement: bytes) -> dict[str, Any]:
        identity = json.dumps([self.subject, self.issuer]).encode()
        certificate = json.dumps(
            {"identity": _text(identity), "seal": _text(self.sigstore.seal("certificate", identity))}
        )
        signature = _signature(certificate.encode(), statement)
        time = self.sigstore.signed_at.encode()
        stamp = {"time": time.decode(), "seal": _text(self.sigstore.seal("timestamp", time + signature))}
        root = self.sigstore.seal("log", signature)
        return {
            "mediaType": SIGSTORE_BUNDLE,
            "verificationMaterial": {
                "certificate": {"rawBytes": _text(certificate.encode())},
                "tlogEntries": [{"logIndex": str(len(self.sigstore.log)), "inclusionProof": {"rootHash": _text(root)}}],
                "timestampVerificationData": {
                    "rfc3161Timestamps": [{"signedTimestamp": _text(json.dumps(stamp).encode())}]
                },
            },
            "dsseEnvelope": {
                "payload": _text(statement),
                "payloadType": PAYLOAD_TYPE,
                "signatures": [{"sig": _text(signature)}],
            },
        }


@dataclass(frozen=True)
class FakeVerifier:
    """ports.BundleVerifier."""

    sigstore: FakeSigstore
    subject: str = SUBJECT
    issuer: str = ISSUER

    def verify(self, bundle: bytes, *, subject_digest: str, predicate_type: str) -> Attested:
        """A statement about one digest."""
        return self.verify_joint(bundle, subject_digests=(subject_digest,), predicate_type=predicate_type)

    def verify_joint(self, bundle: bytes, *, subject_digests: Sequence[str], predicate_type: str) -> Attested:
        """The steps of the real verifier, in their order."""
        outline = load_outline(bundle)
        _require(_signature(outline.certificate, outline.payload) == outline.signature, Step.SIGNATURE)
        signed_at = self._signed_at(outline)
        certificate = _guarded(Step.CERTIFICATE, lambda: json.loads(outline.certificate))
        identity = base64.b64decode(certificate["identity"])
        seal = base64.b64decode(certificate["seal"])
        _require(seal == self.sigstore.seal("certificate", identity), Step.CERTIFICATE)
        _require(json.loads(identity) == [self.subject, self.issuer], Step.IDENTITY)
        proofs = [entry.get("inclusionProof", {}).get("rootHash") for entry in outline.entries]
        _require(proofs == [_text(self.sigstore.seal("log", outline.signature))], Step.LOG)
        statement = _guarded(Step.STATEMENT, lambda: load_joint_statement(outline.payload, Step.STATEMENT))
        _require(statement.subject_digests == tuple(subject_digests), Step.SUBJECT)
        _require(statement.predicate_type == predicate_type, Step.PREDICATE)
        return Attested(
            predicate_type=predicate_type,
            subject_digest=statement.subject_digest,
            predicate=statement.predicate,
            signed_at=signed_at,
            identity=self.subject,
            issuer=self.issuer,
            bundle=bundle,
        )

    def _signed_at(self, outline: Outline) -> str:
        _require(len(outline.timestamps) == 1, Step.TIMESTAMP)
        stamp = _guarded(Step.TIMESTAMP, lambda: json.loads(outline.timestamps[0]))
        seal = self.sigstore.seal("timestamp", stamp["time"].encode() + outline.signature)
        _require(_text(seal) == stamp["seal"], Step.TIMESTAMP)
        return str(stamp["time"])


def _signature(certificate: bytes, payload: bytes) -> bytes:
    return hashlib.sha256(certificate + b"\0" + payload).digest()


def _require(holds: bool, step: Step) -> None:
    if not holds:
        raise IntegrityError("the bundle does not verify", where=step)


def _guarded(step: Step, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except Exception as error:
        raise IntegrityError("the bundle does not verify", where=step) from error


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
