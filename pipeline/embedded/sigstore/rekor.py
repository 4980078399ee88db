"""The two APIs of the transparency log over `tlog`: what is accepted, how an entry is made canonical, and the answers.

Rekor v1: https://github.com/sigstore/rekor, openapi.yaml, kinds `dsse` and `hashedrekord` 0.0.1. Rekor v2:
https://github.com/sigstore/rekor-tiles, CLIENTS.md, kind `hashedrekord` 0.0.2. A signature that does not verify is
never logged.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

import rfc8785
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError

from pipeline.embedded.sigstore.keys import public_der
from pipeline.embedded.sigstore.refusal import RefusedError
from pipeline.embedded.sigstore.tlog import Inclusion, Log

# An entry bundle of the tiles API carries lengths of two bytes.
MAX_ENTRY_BYTES = 65535

Model = TypeVar("Model", bound=BaseModel)


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class _EnvelopeSignature(_Message):
    sig: str


class _Envelope(_Message):
    payload: str
    payload_type: str = Field(alias="payloadType")
    signatures: list[_EnvelopeSignature] = Field(min_length=1, max_length=1)


class _ProposedContent(_Message):
    envelope: str
    verifiers: list[str] = Field(min_length=1, max_length=1)


class _DsseSpec(_Message):
    proposed_content: _ProposedContent = Field(alias="proposedContent")


class _Dsse(_Message):
    kind: Literal["dsse"]
    spec: _DsseSpec


class _Hash(_Message):
    algorithm: Literal["sha256"]
    value: str


class _Data(_Message):
    hash: _Hash


class _PublicKey(_Message):
    content: str


class _RecordSignature(_Message):
    content: str
    public_key: _PublicKey = Field(alias="publicKey")


class _RecordSpec(_Message):
    data: _Data
    signature: _RecordSignature


class _Record(_Message):
    kind: Literal["hashedrekord"]
    spec: _RecordSpec


class _Version1(RootModel[Annotated[_Dsse | _Record, Field(discriminator="kind")]]):
    """Either kind."""


class _Certificate(_Message):
    raw_bytes: str = Field(alias="rawBytes")


class _Verifier(_Message):
    certificate: _Certificate = Field(alias="x509Certificate")
    key_details: str = Field(alias="keyDetails")


class _Signature(_Message):
    content: str
    verifier: _Verifier


class _HashedRecord(_Message):
    digest: str
    signature: _Signature


class _Version2(_Message):
    request: _HashedRecord = Field(alias="hashedRekordRequestV002")


@dataclass(frozen=True)
class Rekor1:
    """Rekor v1: answers with a signed entry timestamp (a promise with a time) and an inclusion proof."""

    log: Log
    key: ec.EllipticCurvePrivateKey

    @property
    def log_id(self) -> bytes:
        """SHA-256 of the public key."""
        return hashlib.sha256(public_der(self.key)).digest()

    def add(self, request: bytes, now: datetime) -> dict[str, Any]:
        """Log what POST /api/v1/log/entries proposes; `now` becomes the integrated time."""
        proposed = _load(_Version1, request).root
        spec = _dsse_spec(proposed) if isinstance(proposed, _Dsse) else _record_spec(proposed)
        body = rfc8785.dumps({"apiVersion": "0.0.1", "kind": proposed.kind, "spec": spec})
        inclusion = _append(self.log, body)
        entry: dict[str, str | int] = {
            "body": _text(body),
            "integratedTime": int(now.timestamp()),
            "logID": self.log_id.hex(),
            "logIndex": inclusion.index,
        }
        promise = self.key.sign(rfc8785.dumps(entry), ec.ECDSA(hashes.SHA256()))
        proof = {
            "checkpoint": inclusion.checkpoint,
            "hashes": [node.hex() for node in inclusion.hashes],
            "logIndex": inclusion.index,
            "rootHash": inclusion.root.hex(),
            "treeSize": inclusion.size,
        }
        name = self.log_id[:8].hex() + hashlib.sha256(b"\0" + body).hexdigest()
        return {name: {**entry, "verification": {"inclusionProof": proof, "signedEntryTimestamp": _text(promise)}}}


@dataclass(frozen=True)
class Rekor2:
    """Rekor v2: no promise and no time of its own; a bundle needs a signed timestamp beside it."""

    log: Log
    log_id: bytes

    def add(self, request: bytes) -> dict[str, Any]:
        """Log what POST /api/v2/log/entries asks for."""
        record = _load(_Version2, request).request
        certificate = _bytes(record.signature.verifier.certificate.raw_bytes)
        _check_signature(certificate, _bytes(record.signature.content), _bytes(record.digest))
        data = {"algorithm": "SHA2_256", "digest": record.digest}
        spec = {"hashedRekordV002": {"data": data, "signature": record.signature.model_dump(by_alias=True)}}
        body = rfc8785.dumps({"apiVersion": "0.0.2", "kind": "hashedrekord", "spec": spec})
        inclusion = _append(self.log, body)
        return {
            "logIndex": str(inclusion.index),
            "logId": {"keyId": _text(self.log_id)},
            "kindVersion": {"kind": "hashedrekord", "version": "0.0.2"},
            "canonicalizedBody": _text(body),
            "inclusionProof": {
                "logIndex": str(inclusion.index),
                "rootHash": _text(inclusion.root),
                "treeSize": str(inclusion.size),
                "hashes": [_text(node) for node in inclusion.hashes],
                "checkpoint": {"envelope": inclusion.checkpoint},
            },
        }


def _dsse_spec(proposed: _Dsse) -> dict[str, Any]:
    raw, verifier = proposed.spec.proposed_content.envelope, proposed.spec.proposed_content.verifiers[0]
    envelope = _load(_Envelope, raw.encode())
    payload, signature = _bytes(envelope.payload), envelope.signatures[0].sig
    kind = envelope.payload_type.encode()
    encoded = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    _check_signature(_bytes(verifier), _bytes(signature), hashlib.sha256(encoded).digest())
    return {
        "envelopeHash": {"algorithm": "sha256", "value": hashlib.sha256(raw.encode()).hexdigest()},
        "payloadHash": {"algorithm": "sha256", "value": hashlib.sha256(payload).hexdigest()},
        "signatures": [{"signature": signature, "verifier": verifier}],
    }


def _record_spec(proposed: _Record) -> dict[str, Any]:
    signature, value = proposed.spec.signature, proposed.spec.data.hash.value
    try:
        digest = bytes.fromhex(value)
    except ValueError:
        raise RefusedError(400, "the hash is not hexadecimal") from None
    _check_signature(_bytes(signature.public_key.content), _bytes(signature.content), digest)
    return {
        "data": {"hash": {"algorithm": "sha256", "value": value.lower()}},
        "signature": {"content": signature.content, "publicKey": {"content": signature.public_key.content}},
    }


def _check_signature(certificate: bytes, signature: bytes, digest: bytes) -> None:
    load = x509.load_pem_x509_certificate if certificate.startswith(b"-----") else x509.load_der_x509_certificate
    try:
        key = load(certificate).public_key()
        if not isinstance(key, ec.EllipticCurvePublicKey):
            raise RefusedError(400, "the certificate's key is not an ECDSA key")
        key.verify(signature, digest, ec.ECDSA(Prehashed(hashes.SHA256())))
    except (ValueError, InvalidSignature):
        raise RefusedError(400, "the signature does not verify with the certificate") from None


def _append(log: Log, body: bytes) -> Inclusion:
    if len(body) > MAX_ENTRY_BYTES:
        raise RefusedError(413, f"an entry of {len(body)} bytes; the limit is {MAX_ENTRY_BYTES}")
    return log.append(body)


def _load(kind: type[Model], raw: bytes) -> Model:
    try:
        return kind.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "document"
        raise RefusedError(400, f"not an entry that this log takes: {field}: {first['msg']}") from None


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise RefusedError(400, "not base64 where base64 is wanted") from None


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
