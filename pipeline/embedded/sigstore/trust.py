"""What clients of the private Sigstore pin: the trusted root, and the trust configuration that names its services.

Both are made from the state folder alone, so they are the same whether the services run or not, and over restarts.
Formats: https://github.com/sigstore/protobuf-specs, sigstore_trustroot.proto.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any, Literal

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from pipeline.embedded.sigstore.keys import ORGANIZATION, Keys, load_keys, public_der
from pipeline.model.record import canonical_json

# Logical names: a verifier must not depend on the loopback port, and no URL with a port is a legal log origin.
REKOR1_NAME = f"rekor.{ORGANIZATION}"
REKOR2_NAME = f"log.{ORGANIZATION}"
VALID_FROM = {"start": "2020-01-01T00:00:00Z"}
TIMESTAMP_PATH = "/api/v1/timestamp"

_P256 = "PKIX_ECDSA_P256_SHA_256"


def service_url(port: int) -> str:
    """Where the private Sigstore listens."""
    return f"http://127.0.0.1:{port}"


def issuer_url(port: int) -> str:
    """The issuer of its identity tokens, and the issuer in its certificates."""
    return f"{service_url(port)}/oidc"


def ambient_url(port: int) -> str:
    """The endpoint that gives an identity token for the request token, as GitHub gives its jobs one."""
    return f"{issuer_url(port)}/ambient"


def trusted_root(state_path: Path, port: int) -> bytes:
    """Canonical JSON of the trusted root v0.1; makes the keys of a fresh state folder."""
    return canonical_json(_trusted_root(load_keys(state_path), port))


def trust_config(state_path: Path, port: int, rekor: Literal[1, 2] = 1) -> bytes:
    """Canonical JSON of a client trust configuration v0.1, for sigstore-python's ClientTrustConfig."""
    url = service_url(port)
    signing_config = {
        "mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json",
        "caUrls": _service(url, 1),
        "oidcUrls": _service(issuer_url(port), 1),
        "rekorTlogUrls": _service(url, rekor),
        "rekorTlogConfig": {"selector": "ANY"},
        "tsaUrls": _service(url + TIMESTAMP_PATH, 1),
        "tsaConfig": {"selector": "ANY"},
    }
    return canonical_json(
        {
            "mediaType": "application/vnd.dev.sigstore.clienttrustconfig.v0.1+json",
            "trustedRoot": _trusted_root(load_keys(state_path), port),
            "signingConfig": signing_config,
        }
    )


def rekor1_log_id(key: ec.EllipticCurvePrivateKey) -> bytes:
    """SHA-256 of the public key."""
    return hashlib.sha256(public_der(key)).digest()


def rekor2_log_id(key: ed25519.Ed25519PrivateKey) -> bytes:
    """The key id of a C2SP signed note: SHA-256 of name, newline, algorithm 1 and the raw public key."""
    raw = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return hashlib.sha256(REKOR2_NAME.encode() + b"\n\x01" + raw).digest()


def _trusted_root(keys: Keys, port: int) -> dict[str, Any]:
    url = service_url(port)
    certificate_log_id = hashlib.sha256(public_der(keys.certificate_log)).digest()
    return {
        "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
        "tlogs": [
            _log(f"https://{REKOR1_NAME}", public_der(keys.rekor1), rekor1_log_id(keys.rekor1), _P256),
            _log(f"https://{REKOR2_NAME}", public_der(keys.rekor2), rekor2_log_id(keys.rekor2), "PKIX_ED25519"),
        ],
        "certificateAuthorities": [_authority(url, keys.fulcio.chain)],
        "ctlogs": [_log(f"{url}/certificate-log", public_der(keys.certificate_log), certificate_log_id, _P256)],
        "timestampAuthorities": [_authority(url + TIMESTAMP_PATH, keys.tsa.chain)],
    }


def _log(url: str, key: bytes, log_id: bytes, details: str) -> dict[str, Any]:
    return {
        "baseUrl": url,
        "hashAlgorithm": "SHA2_256",
        "logId": {"keyId": _text(log_id)},
        "publicKey": {"rawBytes": _text(key), "keyDetails": details, "validFor": VALID_FROM},
    }


def _authority(url: str, chain: tuple[x509.Certificate, ...]) -> dict[str, Any]:
    certificates = [{"rawBytes": _text(one.public_bytes(serialization.Encoding.DER))} for one in chain]
    return {
        "subject": {"organization": ORGANIZATION, "commonName": chain[-1].subject.rfc4514_string()},
        "uri": url,
        "validFor": VALID_FROM,
        "certChain": {"certificates": certificates},
    }


def _service(url: str, version: int) -> list[dict[str, Any]]:
    return [{"url": url, "majorApiVersion": version, "validFor": VALID_FROM, "operator": ORGANIZATION}]


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
