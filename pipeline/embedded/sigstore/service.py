"""All services on one state folder, without HTTP: what each request means."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipeline.embedded.sigstore import trust
from pipeline.embedded.sigstore.certificates import CertificateAuthority
from pipeline.embedded.sigstore.identity import AUDIENCE, PUBLISHER, Issuer, check_request_token
from pipeline.embedded.sigstore.keys import load_keys, load_request_token
from pipeline.embedded.sigstore.refusal import RefusedError
from pipeline.embedded.sigstore.rekor import Rekor1, Rekor2
from pipeline.embedded.sigstore.tlog import Log, Signature
from pipeline.embedded.sigstore.tsa import TimestampAuthority

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The machine's clock."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Clocks:
    """Two clocks, so that a test can let a certificate expire before the log sees it."""

    certificates: Clock = utc_now
    witnesses: Clock = utc_now


class _CertificateRequest(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)

    request: str = Field(alias="certificateSigningRequest")


class Services:
    """One private Sigstore. Methods may be called from several threads."""

    def __init__(self, state_path: Path, port: int, clocks: Clocks | None = None) -> None:
        keys = load_keys(state_path)
        self._clocks = clocks or Clocks()
        self._request_token = load_request_token(state_path)
        self.issuer = Issuer(keys.oidc, trust.issuer_url(port))
        self._authority = CertificateAuthority(keys.fulcio, keys.certificate_log)
        self._timestamps = TimestampAuthority(keys.tsa)
        origin = f"{trust.REKOR1_NAME} - {int.from_bytes(trust.rekor1_log_id(keys.rekor1)[:6], 'big')}"
        first, second = trust.rekor1_log_id(keys.rekor1), trust.rekor2_log_id(keys.rekor2)
        signature1 = Signature(origin, trust.REKOR1_NAME, first[:4], lambda note: _sign(keys.rekor1, note))
        signature2 = Signature(trust.REKOR2_NAME, trust.REKOR2_NAME, second[:4], keys.rekor2.sign)
        self._rekor1 = Rekor1(Log(state_path / "rekor1.log", signature1), keys.rekor1)
        self._rekor2 = Rekor2(Log(state_path / "rekor2.log", signature2), second)

    def log(self, rekor: Literal[1, 2]) -> Log:
        """The log behind one of the two APIs."""
        return self._rekor1.log if rekor == 1 else self._rekor2.log

    def ambient_token(self, authorization: str, audience: str) -> dict[str, Any]:
        """An identity token of the publisher for whoever has the request token."""
        check_request_token(authorization, self._request_token)
        if audience != AUDIENCE:
            raise RefusedError(400, "tokens are for the audience `sigstore` only")
        return {"value": self.issuer.token(PUBLISHER, int(self._clocks.certificates().timestamp()))}

    def certify(self, body: bytes, authorization: str) -> dict[str, Any]:
        """POST /api/v2/signingCert of Fulcio."""
        subject = self.issuer.subject_of(authorization.partition(" ")[2])
        try:
            request = base64.b64decode(_CertificateRequest.model_validate_json(body).request, validate=True)
        except (ValidationError, binascii.Error):
            raise RefusedError(400, "not a request for a certificate") from None
        now = self._clocks.certificates()
        leaf = self._authority.issue_for_request(request, subject, self.issuer.url, now)
        chain = [_pem(one) for one in (leaf, *self._authority.authority.chain)]
        return {"signedCertificateEmbeddedSct": {"chain": {"certificates": chain}}}

    def trust_bundle(self) -> dict[str, Any]:
        """GET /api/v2/trustBundle of Fulcio."""
        return {"chains": [{"certificates": [_pem(one) for one in self._authority.authority.chain]}]}

    def log_version1(self, body: bytes) -> dict[str, Any]:
        """POST /api/v1/log/entries of Rekor."""
        return self._rekor1.add(body, self._clocks.witnesses())

    def log_version2(self, body: bytes) -> dict[str, Any]:
        """POST /api/v2/log/entries of Rekor."""
        return self._rekor2.add(body)

    def timestamp(self, query: bytes) -> bytes:
        """POST of an RFC 3161 request."""
        return self._timestamps.respond(query, self._clocks.witnesses())

    def close(self) -> None:
        """Give the logs up."""
        self._rekor1.log.close()
        self._rekor2.log.close()


def _pem(certificate: Any) -> str:
    return str(certificate.public_bytes(serialization.Encoding.PEM).decode())


def _sign(key: ec.EllipticCurvePrivateKey, note: bytes) -> bytes:
    return key.sign(note, ec.ECDSA(hashes.SHA256()))
