"""The timestamp authority: RFC 3161 answers, signed by a certificate that serves nothing else."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime

from cryptography.hazmat import asn1
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from pipeline.embedded.sigstore import rfc3161
from pipeline.embedded.sigstore.keys import Authority

ACCURACY_S = 1
_SHA256 = rfc3161.AlgorithmIdentifier(algorithm=rfc3161.SHA256)


@dataclass(frozen=True)
class TimestampAuthority:
    """Timestamps hashes. A serial number is random, as no table of issued ones is kept."""

    authority: Authority

    def respond(self, query: bytes, now: datetime) -> bytes:
        """Answer a DER request: granted, or a rejection where it is malformed or its hash is not of its algorithm."""
        try:
            request = asn1.decode_der(rfc3161.TimeStampReq, query)
        except ValueError:
            return _rejection()
        imprint = request.message_imprint
        if rfc3161.DIGEST_BYTES.get(imprint.hash_algorithm.algorithm) != len(imprint.hashed_message):
            return _rejection()
        info = rfc3161.TSTInfo(
            version=1,
            policy=request.policy or rfc3161.SIGSTORE_POLICY,
            message_imprint=imprint,
            serial_number=secrets.randbits(159),
            time=asn1.GeneralizedTime(now.replace(microsecond=0)),
            accuracy=rfc3161.Accuracy(seconds=ACCURACY_S),
            nonce=request.nonce,
        )
        token = self._sign(asn1.encode_der(info), with_certificates=request.wants_certificates)
        status = rfc3161.PKIStatusInfo(status=rfc3161.GRANTED)
        return asn1.encode_der(rfc3161.TimeStampResp(status=status, token=token))

    def _sign(self, info: bytes, *, with_certificates: bool) -> rfc3161.ContentInfo:
        # Only the signing certificate: whoever verifies has its root from elsewhere, and would not look at ours.
        certificate = rfc3161.raw(self.authority.certificate.public_bytes(serialization.Encoding.DER))
        data = rfc3161.SignedData(
            version=3,
            digest_algorithms=asn1.SetOf([_SHA256]),
            content=rfc3161.EncapsulatedContent(content_type=rfc3161.TST_INFO, content=info),
            certificates=asn1.SetOf([certificate]) if with_certificates else None,
            signers=asn1.SetOf([self._signer(info)]),
        )
        return rfc3161.ContentInfo(content_type=rfc3161.SIGNED_DATA, content=data)

    def _signer(self, info: bytes) -> rfc3161.SignerInfo:
        certificate = self.authority.certificate
        der = certificate.public_bytes(serialization.Encoding.DER)
        identifier = rfc3161.ESSCertIDv2(certificate_hash=hashlib.sha256(der).digest())
        attributes = asn1.SetOf(
            [
                rfc3161.attribute(rfc3161.CONTENT_TYPE, rfc3161.TST_INFO),
                rfc3161.attribute(rfc3161.MESSAGE_DIGEST, hashlib.sha256(info).digest()),
                rfc3161.attribute(
                    rfc3161.SIGNING_CERTIFICATE_V2, rfc3161.SigningCertificateV2(certificates=[identifier])
                ),
            ]
        )
        # RFC 5652, section 5.4: the signature covers the attributes under the tag of a SET, not under [0].
        signature = self.authority.key.sign(asn1.encode_der(attributes), ec.ECDSA(hashes.SHA256()))
        return rfc3161.SignerInfo(
            version=1,
            signer=rfc3161.IssuerAndSerialNumber(
                issuer=rfc3161.raw(certificate.issuer.public_bytes()), serial_number=certificate.serial_number
            ),
            digest_algorithm=_SHA256,
            signed_attributes=attributes,
            signature_algorithm=rfc3161.AlgorithmIdentifier(algorithm=rfc3161.ECDSA_WITH_SHA256),
            signature=signature,
        )


def _rejection() -> bytes:
    status = rfc3161.PKIStatusInfo(status=rfc3161.REJECTION)
    return asn1.encode_der(rfc3161.TimeStampResp(status=status, token=None))
