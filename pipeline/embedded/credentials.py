"""Secrets of the local target: made once, kept under its state folder, readable by their owner only.

They protect nothing beyond this machine's loopback, and are treated like any other secret all the same.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pipeline.errors import ServiceError
from pipeline.files import read_bytes_limited, write_atomic

_MODE = 0o600
_LIFETIME = timedelta(days=3650)
_CLOCK_SKEW = timedelta(days=1)
_MAX_BYTES = 16384


def load_or_make_password(path: Path) -> str:
    """256 random bits as text; the same on every call."""
    if not path.exists():
        write_atomic(path, secrets.token_urlsafe(32).encode(), _MODE)
    return read_private(path).decode("ascii")


def load_or_make_key(key_path: Path, certificate_path: Path, name: str) -> None:
    """A P-256 key, and a certificate of its own signature by which a registry knows it."""
    if key_path.exists() and certificate_path.exists():
        return
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    # The key last: a certificate without its key is made again, a key without its certificate cannot occur.
    write_atomic(certificate_path, _certificate(key, name).public_bytes(serialization.Encoding.PEM), _MODE)
    write_atomic(key_path, private, _MODE)


def read_private(path: Path) -> bytes:
    """A secret's bytes; ServiceError when others could have read or changed it."""
    if path.stat().st_mode & 0o077:
        raise ServiceError(
            "a secret is open to others", where=str(path), remedy="run `nox -s down`, remove it, run again"
        )
    return read_bytes_limited(path, _MAX_BYTES)


def _certificate(key: ec.EllipticCurvePrivateKey, name: str) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - _CLOCK_SKEW).not_valid_after(now + _LIFETIME)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    return builder.sign(key, hashes.SHA256())
