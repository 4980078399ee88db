"""The state folder: private keys (0600) and the certificates of the authorities, made once and then only read.

Creation is a link of a complete file to its final name, so that two processes that start together agree on one key
and a killed one leaves nothing half-written.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pipeline.errors import StageError

ORGANIZATION = "local-sigstore.test"
LIFETIME = timedelta(days=3650)
# Certificates of the authorities begin before they are made, so that a machine whose clock is set back still signs.
BACKDATED = timedelta(days=1)

_USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


@dataclass(frozen=True)
class Authority:
    """A private key with its certificate and the certificates above it, root last."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    parents: tuple[x509.Certificate, ...]

    @property
    def chain(self) -> tuple[x509.Certificate, ...]:
        """The certificate and its parents, root last."""
        return (self.certificate, *self.parents)


@dataclass(frozen=True)
class Keys:
    """Everything secret of one private Sigstore."""

    oidc: ec.EllipticCurvePrivateKey
    certificate_log: ec.EllipticCurvePrivateKey
    rekor1: ec.EllipticCurvePrivateKey
    rekor2: ed25519.Ed25519PrivateKey
    fulcio: Authority
    tsa: Authority


def load_keys(state_path: Path) -> Keys:
    """Read the keys of a state folder, making those that are absent. The folder becomes 0700, every file 0600."""
    folder = state_path / "keys"
    folder.mkdir(parents=True, exist_ok=True)
    for path in (state_path, folder):
        path.chmod(0o700)
    return Keys(
        oidc=_ec_key(folder, "oidc"),
        certificate_log=_ec_key(folder, "certificate-log"),
        rekor1=_ec_key(folder, "rekor1"),
        rekor2=_ed25519_key(folder, "rekor2"),
        fulcio=_authority(folder, "fulcio", ExtendedKeyUsageOID.CODE_SIGNING, ca=True),
        tsa=_authority(folder, "tsa", ExtendedKeyUsageOID.TIME_STAMPING, ca=False),
    )


def load_request_token(state_path: Path) -> str:
    """The secret that the ambient-token endpoint asks for, made when absent; a file of 0600."""
    return _once(state_path / "request-token", lambda: secrets.token_urlsafe(32).encode()).decode()


def public_der(key: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey) -> bytes:
    """SubjectPublicKeyInfo, DER."""
    return key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def key_usage(*names: str) -> x509.KeyUsage:
    """A key usage extension with exactly these bits set."""
    return x509.KeyUsage(**{name: name in names for name in _USAGES})


def _once(path: Path, make: Callable[[], bytes]) -> bytes:
    if not path.exists():
        scratch = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(make())
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):  # another process was first: its key is the one
                os.link(scratch, path)
        finally:
            scratch.unlink()
    return path.read_bytes()


def _pem(key: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _ec_key(folder: Path, name: str) -> ec.EllipticCurvePrivateKey:
    path = folder / f"{name}.key"
    key = _load(path, _once(path, lambda: _pem(ec.generate_private_key(ec.SECP256R1()))))
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise _foreign(path)
    return key


def _ed25519_key(folder: Path, name: str) -> ed25519.Ed25519PrivateKey:
    path = folder / f"{name}.key"
    key = _load(path, _once(path, lambda: _pem(ed25519.Ed25519PrivateKey.generate())))
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise _foreign(path)
    return key


def _load(path: Path, raw: bytes) -> object:
    try:
        return serialization.load_pem_private_key(raw, None)
    except (ValueError, TypeError):
        raise _foreign(path) from None


def _foreign(path: Path) -> StageError:
    return StageError(
        "not a key, or a key of another kind, in the state of the private Sigstore",
        where=str(path),
        remedy="remove the state folder; what it signed can no longer be verified",
    )


def _authority(folder: Path, name: str, usage: x509.ObjectIdentifier, *, ca: bool) -> Authority:
    root_key, key = _ec_key(folder, f"{name}-root"), _ec_key(folder, name)
    root = _certificate(folder, f"{name}-root", lambda: _issue(f"{name}-root", root_key, None, root_key, None, ca=True))
    certificate = _certificate(folder, name, lambda: _issue(name, key, root, root_key, usage, ca=ca))
    return Authority(key, certificate, (root,))


def _certificate(folder: Path, name: str, make: Callable[[], x509.Certificate]) -> x509.Certificate:
    path = folder / f"{name}.pem"
    raw = _once(path, lambda: make().public_bytes(serialization.Encoding.PEM))
    try:
        return x509.load_pem_x509_certificate(raw)
    except ValueError:
        raise _foreign(path) from None


def _issue(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    issuer_key: ec.EllipticCurvePrivateKey,
    usage: x509.ObjectIdentifier | None,
    *,
    ca: bool,
) -> x509.Certificate:
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANIZATION),
            x509.NameAttribute(NameOID.COMMON_NAME, name),
        ]
    )
    start = datetime.now(UTC) - BACKDATED
    path_length = (0 if issuer else 1) if ca else None
    usages = ("key_cert_sign", "crl_sign") if ca else ("digital_signature",)
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + LIFETIME)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=path_length), critical=True)
        .add_extension(key_usage(*usages), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(identifier, critical=False)
    )
    if usage is not None:  # RFC 3161, section 2.3: critical on a timestamp authority's certificate
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=not ca)
    return builder.sign(issuer_key, hashes.SHA256())
