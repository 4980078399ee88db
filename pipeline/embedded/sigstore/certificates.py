"""Fulcio: a ten-minute certificate for a key, bound to an OIDC subject, with a signed certificate timestamp inside.

Profile: https://github.com/sigstore/fulcio/blob/main/docs/certificate-specification.md and oid-info.md; RFC 6962,
section 3.2, for the timestamp.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat import asn1
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from pipeline.embedded.sigstore.keys import Authority, key_usage, public_der
from pipeline.embedded.sigstore.refusal import RefusedError

LIFETIME = timedelta(minutes=10)

_ISSUER_V1 = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
_ISSUER_V2 = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.8")
_TIMESTAMP_LIST = x509.ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
_SCT_V1 = 0
_PRECERTIFICATE_ENTRY = 1
_SHA256_ECDSA = b"\x04\x03"


@dataclass(frozen=True)
class CertificateAuthority:
    """Fulcio and its certificate log, which is only a key: the timestamps promise inclusion, and nobody audits it."""

    authority: Authority
    log_key: ec.EllipticCurvePrivateKey

    def issue_for_request(self, request_pem: bytes, subject: str, issuer: str, now: datetime) -> x509.Certificate:
        """A certificate for the P-256 key of a PKCS #10 request that proves possession; RefusedError otherwise."""
        try:
            request = x509.load_pem_x509_csr(request_pem)
            public_key = request.public_key()
        except (ValueError, TypeError):
            raise RefusedError(400, "the certificate signing request cannot be read") from None
        if not isinstance(public_key, ec.EllipticCurvePublicKey) or not isinstance(public_key.curve, ec.SECP256R1):
            raise RefusedError(400, "the key of the request is not on P-256")
        if not request.is_signature_valid:
            raise RefusedError(400, "the signing request is not signed by its key")
        return self.issue(public_key, subject, issuer, now)

    def issue(self, key: ec.EllipticCurvePublicKey, subject: str, issuer: str, now: datetime) -> x509.Certificate:
        """A certificate valid for LIFETIME from now (UTC)."""
        builder = self._builder(key, subject, issuer, now.replace(microsecond=0))
        # The promise covers the certificate without the promise: sign once for those bytes, then again with the list.
        unpromised = builder.sign(self.authority.key, hashes.SHA256()).tbs_certificate_bytes
        promise = self._promise(unpromised, int(now.timestamp() * 1000))
        extension = x509.UnrecognizedExtension(_TIMESTAMP_LIST, asn1.encode_der(promise))
        return builder.add_extension(extension, critical=False).sign(self.authority.key, hashes.SHA256())

    def _builder(
        self, key: ec.EllipticCurvePublicKey, subject: str, issuer: str, start: datetime
    ) -> x509.CertificateBuilder:
        try:
            name = x509.UniformResourceIdentifier(subject)
        except ValueError:
            raise RefusedError(400, "the token's subject is not a URI in ASCII") from None
        ca_key = self.authority.key.public_key()
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([]))
            .issuer_name(self.authority.certificate.subject)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(start + LIFETIME)
            .add_extension(key_usage("digital_signature"), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key), critical=False)
            .add_extension(x509.SubjectAlternativeName([name]), critical=True)
            .add_extension(x509.UnrecognizedExtension(_ISSUER_V1, issuer.encode()), critical=False)
            .add_extension(x509.UnrecognizedExtension(_ISSUER_V2, asn1.encode_der(issuer)), critical=False)
        )

    def _promise(self, certificate_body: bytes, time_ms: int) -> bytes:
        issuer_key_id = hashlib.sha256(public_der(self.authority.key)).digest()
        entry = issuer_key_id + len(certificate_body).to_bytes(3, "big") + certificate_body
        signed = struct.pack("!BBQH", _SCT_V1, 0, time_ms, _PRECERTIFICATE_ENTRY) + entry + b"\0\0"
        signature = self.log_key.sign(signed, ec.ECDSA(hashes.SHA256()))
        log_id = hashlib.sha256(public_der(self.log_key)).digest()
        timestamp = bytes([_SCT_V1]) + log_id + struct.pack("!QH", time_ms, 0) + _SHA256_ECDSA
        timestamp += struct.pack("!H", len(signature)) + signature
        return struct.pack("!HH", len(timestamp) + 2, len(timestamp)) + timestamp
