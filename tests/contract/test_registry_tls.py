"""Encrypted connections: who the server is decides, and it is not asked twice."""

from __future__ import annotations

import datetime as dt
import ssl
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from pipeline.adapters.registry_exchange import Call, Limits
from pipeline.adapters.registry_retry import Temporary
from pipeline.adapters.registry_transport import Transport
from pipeline.errors import ServiceError
from tests.fakes.registry_server import RegistryServer


@pytest.fixture
def self_signed_path(tmp_path: Path) -> Path:
    """Key and certificate of 127.0.0.1 that nobody vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "registry.test")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "server.pem"
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(pem + certificate.public_bytes(Encoding.PEM))
    return path


@pytest.fixture
def server(self_signed_path: Path) -> Iterator[RegistryServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed_path)
    with RegistryServer(auth="none", tls=context) as made:
        yield made


def test_an_unknown_certificate_is_refused_at_once(server: RegistryServer) -> None:
    call = Call("GET", f"https://{server.host}/v2/", "here")
    with pytest.raises(ServiceError, match=r"TLS certificate of 127\.0\.0\.1"):
        Transport(Limits(connect_s=2, answer_s=2)).send(call, "Bearer secret")
    assert server.seen == []


def test_a_server_that_does_not_encrypt_hears_nothing() -> None:
    with RegistryServer(auth="none") as server:
        call = Call("GET", f"https://{server.host}/v2/", "here")
        with pytest.raises(Temporary):
            Transport(Limits(connect_s=2, answer_s=2)).send(call, "Bearer secret")
        assert server.seen == []
