"""The private Sigstore as a server: what it refuses, what survives a restart or a kill, and what it keeps secret."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from pipeline.adapters.keyless import EmbeddedToken, KeylessSigner, KeylessVerifier
from pipeline.derive import statements
from pipeline.embedded.sigstore import tlog, trust
from pipeline.embedded.sigstore.identity import PUBLISHER
from pipeline.embedded.sigstore.server import PrivateSigstore
from pipeline.errors import LockedError, ServiceError, StageError
from tests.fakes.private_sigstore import DIGEST, IMAGE, SIGN, Party, running

STATEMENT = statements.make_sign_statement(IMAGE)


@pytest.fixture(scope="module")
def party(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Party]:
    with running(tmp_path_factory.mktemp("sigstore")) as party:
        yield party


def url(party: Party, path: str) -> str:
    return trust.service_url(party.port) + path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Process:
    """`python -m pipeline.embedded.sigstore`, ready when constructed."""

    def __init__(self, state_path: Path, port: int) -> None:
        self.state_path, self.port = state_path, port
        command = [sys.executable, "-m", "pipeline.embedded.sigstore", str(state_path), str(port)]
        self.child = subprocess.Popen(command, stderr=subprocess.PIPE, cwd=Path(__file__).parents[2])
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and self.child.poll() is None:
            try:
                requests.get(trust.service_url(port) + "/api/v2/trustBundle", timeout=1).raise_for_status()
                return
            except requests.RequestException:
                time.sleep(0.05)
        self.kill()
        raise AssertionError(f"not ready: {self.child.stderr.read() if self.child.stderr else b''!r}")

    def sign(self) -> bytes:
        token = EmbeddedToken(trust.ambient_url(self.port), self.state_path / "request-token")
        return KeylessSigner(trust.trust_config(self.state_path, self.port), token, 0).sign(STATEMENT)

    def kill(self, number: int = signal.SIGKILL) -> int:
        if self.child.poll() is None:
            self.child.send_signal(number)
        return self.child.wait(10)


def test_a_killed_process_starts_again_with_the_same_root(tmp_path: Path) -> None:
    port = free_port()
    root_before = trust.trusted_root(tmp_path, port)
    first = Process(tmp_path, port)
    try:
        bundle = first.sign()
    finally:
        first.kill()
    with (tmp_path / "rekor1.log").open("ab") as log:
        log.write(b"torn by the kill")
    second = Process(tmp_path, port)
    try:
        assert trust.trusted_root(tmp_path, port) == root_before
        verifier = KeylessVerifier(root_before, PUBLISHER, trust.issuer_url(port))
        for one in (bundle, second.sign()):
            assert verifier.verify(one, subject_digest=DIGEST, predicate_type=SIGN)
        index = json.loads(second.sign())["verificationMaterial"]["tlogEntries"][0]["logIndex"]
        assert index == "2"
        assert second.kill(signal.SIGTERM) == 0
    finally:
        second.kill()


def test_a_port_that_is_taken_is_a_clear_error(tmp_path: Path, party: Party) -> None:
    with pytest.raises(ServiceError) as caught:
        PrivateSigstore(tmp_path, party.port)
    assert str(party.port) in str(caught.value)


def test_one_server_a_state(party: Party) -> None:
    with pytest.raises(LockedError):
        PrivateSigstore(party.state_path, 0)


def test_only_the_owner_reads_the_state(party: Party) -> None:
    for path in [party.state_path, *party.state_path.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path
    assert sorted(path.name for path in (party.state_path / "keys").iterdir() if path.name.startswith(".")) == []


def test_only_loopback_is_listened_on(party: Party) -> None:
    listening = Path("/proc/net/tcp").read_text().splitlines()[1:]
    addresses = {line.split()[1] for line in listening if line.split()[3] == "0A"}
    assert f"0100007F:{party.port:04X}" in addresses
    assert f"00000000:{party.port:04X}" not in addresses


def test_processes_that_start_together_agree_on_the_keys(tmp_path: Path) -> None:
    roots: list[bytes] = []
    workers = [threading.Thread(target=lambda: roots.append(trust.trusted_root(tmp_path, 1))) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(roots) == 6
    assert len(set(roots)) == 1


def test_a_token_needs_the_request_token(party: Party) -> None:
    for header in (
        {},
        {"Authorization": "bearer wrong"},
        {"Authorization": "bearer "},
        {"Authorization": "basic eDp5"},
    ):
        answer = requests.get(url(party, "/oidc/ambient"), params={"audience": "sigstore"}, headers=header, timeout=5)
        assert answer.status_code == 401
        assert "value" not in answer.text


def test_the_request_token_is_a_bearer_token(party: Party) -> None:
    secret = (party.state_path / "request-token").read_text()
    statuses = [
        requests.get(
            url(party, "/oidc/ambient"),
            params={"audience": "sigstore"},
            headers={"Authorization": f"{scheme} {secret}"},
            timeout=5,
        ).status_code
        for scheme in ("bearer", "Bearer", "basic")
    ]
    assert statuses == [200, 200, 401]


def test_a_certificate_needs_a_key_that_signed_its_request(party: Party) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, hashes.SHA256())
    der = bytearray(request.public_bytes(serialization.Encoding.DER))
    right = bytes(der)
    der[-1] ^= 1
    headers = {"Authorization": f"Bearer {party.token_of(PUBLISHER)}"}
    statuses = []
    for raw in (right, bytes(der)):
        pem = (
            b"-----BEGIN CERTIFICATE REQUEST-----\n" + base64.encodebytes(raw) + b"-----END CERTIFICATE REQUEST-----\n"
        )
        body = {"certificateSigningRequest": base64.b64encode(pem).decode()}
        statuses.append(
            requests.post(url(party, "/api/v2/signingCert"), json=body, headers=headers, timeout=5).status_code
        )
    assert statuses == [201, 400]


def test_a_token_is_for_sigstore_only(party: Party) -> None:
    secret = (party.state_path / "request-token").read_text()
    headers = {"Authorization": f"bearer {secret}"}
    answer = requests.get(url(party, "/oidc/ambient"), params={"audience": "other"}, headers=headers, timeout=5)
    assert answer.status_code == 400


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "x" * 9000])
def test_a_certificate_needs_a_token(party: Party, token: str) -> None:
    answer = requests.post(
        url(party, "/api/v2/signingCert"), json={}, headers={"Authorization": f"Bearer {token}"}, timeout=5
    )
    assert answer.status_code == 401
    assert not token or token == "x" or token not in answer.text


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/api/v1/log/entries", b"", 400),
        ("/api/v1/log/entries", b"[]", 400),
        ("/api/v1/log/entries", b'{"kind":"rekord","spec":{}}', 400),
        (
            "/api/v1/log/entries",
            b'{"kind":"dsse","spec":{"proposedContent":{"envelope":"{}","verifiers":["AA=="]}}}',
            400,
        ),
        ("/api/v1/log/entries", b'{"kind":"dsse","spec":' + b"[" * 50_000, 400),
        ("/api/v2/log/entries", b"{}", 400),
        ("/api/v2/log/entries", b" " * 70_000, 413),
        ("/api/v2/signingCert", b" " * 70_000, 413),
        ("/api/v1/timestamp", b" " * 70_000, 413),
        ("/api/v1/nothing", b"{}", 404),
    ],
)
def test_what_is_malformed_or_too_large_is_refused(party: Party, path: str, body: bytes, status: int) -> None:
    before = requests.get(url(party, "/api/v2/checkpoint"), timeout=5).text
    assert requests.post(url(party, path), data=body, timeout=10).status_code == status
    assert requests.get(url(party, "/api/v2/checkpoint"), timeout=5).text.split("\n")[1] == before.split("\n")[1]


def test_a_length_that_lies_or_is_none_does_not_hold_the_server(party: Party) -> None:
    for head in (b"Content-Length: 99999999999\r\n", b"Content-Length: -5\r\n", b"", b"Transfer-Encoding: chunked\r\n"):
        with socket.create_connection(("127.0.0.1", party.port), timeout=5) as client:
            client.sendall(b"POST /api/v1/log/entries HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n")
            assert client.recv(64).split()[1] in {b"411", b"413"}
    assert requests.get(url(party, "/api/v2/trustBundle"), timeout=5).ok


def test_a_signature_that_does_not_verify_is_not_logged(party: Party) -> None:
    bundle = json.loads(party.signer().sign(STATEMENT))
    certificate = base64.b64encode(
        b"-----BEGIN CERTIFICATE-----\n"
        + base64.encodebytes(base64.b64decode(bundle["verificationMaterial"]["certificate"]["rawBytes"]))
        + b"-----END CERTIFICATE-----\n"
    ).decode()
    envelope: dict[str, Any] = bundle["dsseEnvelope"]
    status = {}
    for name, change in (("right", {}), ("wrong", {"payloadType": "text/plain"})):
        content = {"envelope": json.dumps({**envelope, **change}), "verifiers": [certificate]}
        proposal = {"apiVersion": "0.0.1", "kind": "dsse", "spec": {"proposedContent": content}}
        status[name] = requests.post(url(party, "/api/v1/log/entries"), json=proposal, timeout=5).status_code
    assert status == {"right": 201, "wrong": 400}


def test_a_signature_that_does_not_verify_is_not_logged_by_version_2(party: Party) -> None:
    bundle = json.loads(party.signer().sign(STATEMENT))
    payload = base64.b64decode(bundle["dsseEnvelope"]["payload"])
    kind = bundle["dsseEnvelope"]["payloadType"]
    status = []
    for text in (payload, payload + b" "):
        encoded = f"DSSEv1 {len(kind)} {kind} {len(text)} ".encode() + text
        record = {
            "digest": base64.b64encode(hashlib.sha256(encoded).digest()).decode(),
            "signature": {
                "content": bundle["dsseEnvelope"]["signatures"][0]["sig"],
                "verifier": {
                    "x509Certificate": bundle["verificationMaterial"]["certificate"],
                    "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                },
            },
        }
        body = {"hashedRekordRequestV002": record}
        status.append(requests.post(url(party, "/api/v2/log/entries"), json=body, timeout=5).status_code)
    assert status == [201, 400]


def test_many_sign_at_once(party: Party) -> None:
    bundles: list[bytes] = []
    workers = [threading.Thread(target=lambda: bundles.append(party.signer().sign(STATEMENT))) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(bundles) == 8
    for bundle in bundles:
        assert party.verifier().verify(bundle, subject_digest=DIGEST, predicate_type=SIGN)


def test_the_tiles_of_rekor_version_2_are_what_the_checkpoint_says(tmp_path: Path) -> None:
    with running(tmp_path, 2) as party:
        bundles = [json.loads(party.signer().sign(STATEMENT)) for _ in range(3)]
        checkpoint = requests.get(url(party, "/api/v2/checkpoint"), timeout=5).text.split("\n")
        hashes = requests.get(url(party, "/api/v2/tile/0/000.p/3"), timeout=5).content
        entries = requests.get(url(party, "/api/v2/tile/entries/000.p/3"), timeout=5).content
        absent = [requests.get(url(party, f"/api/v2/tile/{path}"), timeout=5).status_code for path in TILES_ABSENT]
    bodies = [base64.b64decode(one["verificationMaterial"]["tlogEntries"][0]["canonicalizedBody"]) for one in bundles]
    first, second, third = (tlog.hash_leaf(body) for body in bodies)
    root = tlog.hash_children(tlog.hash_children(first, second), third)
    assert hashes == first + second + third
    assert checkpoint[1:3] == ["3", base64.b64encode(root).decode()]
    assert entries == b"".join(len(body).to_bytes(2, "big") + body for body in bodies)
    assert set(absent) == {404}


TILES_ABSENT = [
    "0/000",
    "0/000.p/4",
    "0/001.p/1",
    "0/x001/000.p/1",
    "1/000.p/1",
    "entries/000",
    "0/0",
    "-1/000",
    "0/000.p/0",
]


def test_discovery_names_the_issuer_of_the_certificates(party: Party) -> None:
    found = requests.get(f"{party.issuer}/.well-known/openid-configuration", timeout=5).json()
    assert found["issuer"] == party.issuer
    keys = requests.get(found["jwks_uri"], timeout=5).json()["keys"]
    assert [(key["kty"], key["crv"], "d" in key) for key in keys] == [("EC", "P-256", False)]


def test_roots_of_two_states_have_nothing_in_common(party: Party, tmp_path: Path) -> None:
    def secrets(root: bytes) -> set[str]:
        return {
            hashlib.sha256(text.encode()).hexdigest()
            for text in root.decode().replace(",", "\n").splitlines()
            if "rawBytes" in text
        }

    own, other = secrets(party.root), secrets(trust.trusted_root(tmp_path, party.port))
    assert len(own) == len(other) > 4
    assert not own & other


@pytest.mark.parametrize("name", ["oidc.key", "rekor2.key", "fulcio.pem", "tsa-root.pem"])
def test_a_damaged_file_of_the_state_is_named(tmp_path: Path, name: str) -> None:
    trust.trusted_root(tmp_path, 1)
    (tmp_path / "keys" / name).write_bytes(b"damaged")
    with pytest.raises(StageError) as caught:
        trust.trusted_root(tmp_path, 1)
    assert caught.value.where.endswith(name)


def test_a_state_folder_that_others_can_read_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    previous = os.umask(0)
    try:
        trust.trusted_root(tmp_path, 1)
    finally:
        os.umask(previous)
    assert tmp_path.stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.rglob("*"))
