"""The ASN.1 of RFC 3161 timestamps and the parts of RFC 5652 (CMS) and RFC 5035 that they need."""

from __future__ import annotations

from typing import Annotated, Any

from cryptography import x509
from cryptography.hazmat import asn1

OID = x509.ObjectIdentifier

SHA256 = OID("2.16.840.1.101.3.4.2.1")
DIGEST_BYTES = {SHA256: 32, OID("2.16.840.1.101.3.4.2.2"): 48, OID("2.16.840.1.101.3.4.2.3"): 64}
ECDSA_WITH_SHA256 = OID("1.2.840.10045.4.3.2")
SIGNED_DATA = OID("1.2.840.113549.1.7.2")
TST_INFO = OID("1.2.840.113549.1.9.16.1.4")
CONTENT_TYPE = OID("1.2.840.113549.1.9.3")
MESSAGE_DIGEST = OID("1.2.840.113549.1.9.4")
SIGNING_CERTIFICATE_V2 = OID("1.2.840.113549.1.9.16.2.47")
SIGSTORE_POLICY = OID("1.3.6.1.4.1.57264.2")

GRANTED = 0
REJECTION = 2


@asn1.sequence
class AlgorithmIdentifier:
    """RFC 5280, section 4.1.1.2; only algorithms without parameters."""

    algorithm: OID
    parameters: asn1.Null | None = None


@asn1.sequence
class MessageImprint:
    """Section 2.4.1: the hash that is timestamped."""

    hash_algorithm: AlgorithmIdentifier
    hashed_message: bytes


@asn1.sequence
class TimeStampReq:
    """Section 2.4.1, without extensions."""

    version: int
    message_imprint: MessageImprint
    policy: OID | None
    nonce: int | None
    wants_certificates: Annotated[bool, asn1.Default(False)]


@asn1.sequence
class Accuracy:
    """Section 2.4.2."""

    seconds: int


@asn1.sequence
class TSTInfo:
    """Section 2.4.2: what is signed."""

    version: int
    policy: OID
    message_imprint: MessageImprint
    serial_number: int
    time: asn1.GeneralizedTime
    accuracy: Accuracy | None
    nonce: int | None


@asn1.sequence
class Attribute:
    """RFC 5652, section 5.3."""

    kind: OID
    values: asn1.SetOf[asn1.TLV]


@asn1.sequence
class IssuerAndSerialNumber:
    """RFC 5652, section 10.2.4."""

    issuer: asn1.TLV
    serial_number: int


@asn1.sequence
class SignerInfo:
    """RFC 5652, section 5.3."""

    version: int
    signer: IssuerAndSerialNumber
    digest_algorithm: AlgorithmIdentifier
    signed_attributes: Annotated[asn1.SetOf[Attribute], asn1.Implicit(0)]
    signature_algorithm: AlgorithmIdentifier
    signature: bytes


@asn1.sequence
class EncapsulatedContent:
    """RFC 5652, section 5.2."""

    content_type: OID
    content: Annotated[bytes, asn1.Explicit(0)]


@asn1.sequence
class SignedData:
    """RFC 5652, section 5.1."""

    version: int
    digest_algorithms: asn1.SetOf[AlgorithmIdentifier]
    content: EncapsulatedContent
    certificates: Annotated[asn1.SetOf[asn1.TLV] | None, asn1.Implicit(0)]
    signers: asn1.SetOf[SignerInfo]


@asn1.sequence
class ContentInfo:
    """RFC 5652, section 3."""

    content_type: OID
    content: Annotated[SignedData, asn1.Explicit(0)]


@asn1.sequence
class PKIStatusInfo:
    """Section 2.4.2."""

    status: int


@asn1.sequence
class TimeStampResp:
    """Section 2.4.2."""

    status: PKIStatusInfo
    token: ContentInfo | None


@asn1.sequence
class ESSCertIDv2:
    """RFC 5035, section 4; the hash algorithm defaults to SHA-256 and is left out."""

    certificate_hash: bytes


@asn1.sequence
class SigningCertificateV2:
    """RFC 5035, section 3."""

    certificates: list[ESSCertIDv2]


def attribute(kind: OID, value: Any) -> Attribute:
    """An attribute with one value of any type that can be encoded."""
    return Attribute(kind=kind, values=asn1.SetOf([raw(asn1.encode_der(value))]))


def raw(der: bytes) -> asn1.TLV:
    """DER bytes as an element of another structure."""
    return asn1.decode_der(asn1.TLV, der)
