"""The outline of a Sigstore bundle v0.3, read strictly before the library sees it."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipeline.derive.statements import load_json
from pipeline.errors import IntegrityError
from pipeline.model.attestation import MAX_BUNDLE_BYTES, PAYLOAD_TYPE, Step
from pipeline.model.oci import SIGSTORE_BUNDLE

MAX_TIMESTAMPS = 4


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, populate_by_name=True)


class _Timestamp(_Part):
    signed: str = Field(alias="signedTimestamp")


class _TimestampData(_Part):
    timestamps: list[_Timestamp] = Field(default_factory=list, alias="rfc3161Timestamps")


class _Certificate(_Part):
    raw: str = Field(alias="rawBytes")


class _Material(_Part):
    certificate: _Certificate
    entries: list[dict[str, Any]] = Field(alias="tlogEntries")
    timestamp_data: _TimestampData | None = Field(default=None, alias="timestampVerificationData")


class _Signature(_Part):
    sig: str


class _Envelope(_Part):
    payload: str
    payload_type: str = Field(alias="payloadType")
    signatures: list[_Signature]


class _Bundle(_Part):
    media_type: str = Field(alias="mediaType")
    material: _Material = Field(alias="verificationMaterial")
    envelope: _Envelope | None = Field(default=None, alias="dsseEnvelope")


@dataclass(frozen=True)
class Outline:
    """What a bundle claims, decoded and not yet believed."""

    payload: bytes
    signature: bytes
    certificate: bytes
    timestamps: tuple[bytes, ...]
    entries: tuple[dict[str, Any], ...]

    @property
    def signed_bytes(self) -> bytes:
        """DSSE's pre-authentication encoding of the payload."""
        kind = PAYLOAD_TYPE.encode()
        return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(self.payload), self.payload)


def load_outline(bundle: bytes) -> Outline:
    """Steps 1 and 2 of verification: the bundle's form, and its envelope. IntegrityError names the step."""
    parsed = _parse(bundle)
    envelope = parsed.envelope
    if envelope is None:
        raise IntegrityError("the bundle holds no DSSE envelope", where=Step.ENVELOPE)
    if envelope.payload_type != PAYLOAD_TYPE:
        raise IntegrityError(f"payload type {envelope.payload_type!r}, not {PAYLOAD_TYPE}", where=Step.ENVELOPE)
    if len(envelope.signatures) != 1:
        raise IntegrityError(f"{len(envelope.signatures)} signatures, not one", where=Step.ENVELOPE)
    data = parsed.material.timestamp_data
    return Outline(
        payload=_decode(envelope.payload),
        signature=_decode(envelope.signatures[0].sig),
        certificate=_decode(parsed.material.certificate.raw),
        timestamps=tuple(_decode(one.signed) for one in (data.timestamps if data else ())),
        entries=tuple(parsed.material.entries),
    )


def _parse(bundle: bytes) -> _Bundle:
    if len(bundle) > MAX_BUNDLE_BYTES:
        raise IntegrityError(f"{len(bundle)} bytes; the limit is {MAX_BUNDLE_BYTES}", where=Step.BUNDLE)
    try:
        parsed = _Bundle.model_validate(load_json(bundle))
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "document"
        raise IntegrityError(f"not a Sigstore bundle: {field}: {first['msg']}", where=Step.BUNDLE) from error
    except (ValueError, RecursionError) as error:
        raise IntegrityError("the bundle is not JSON, or has a key twice", where=Step.BUNDLE) from error
    if parsed.media_type != SIGSTORE_BUNDLE:
        raise IntegrityError(f"media type {parsed.media_type!r}, not {SIGSTORE_BUNDLE}", where=Step.BUNDLE)
    return parsed


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise IntegrityError("not base64 where base64 is wanted", where=Step.BUNDLE) from None
