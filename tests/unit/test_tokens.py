"""The token server's decisions: scopes, credentials, and what a token says."""

from __future__ import annotations

import base64
import http.client
import json
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from pipeline.embedded.credentials import load_or_make_key, load_or_make_password, read_private
from pipeline.embedded.tokens import (
    ISSUER,
    MAX_SCOPES,
    SERVICE,
    USER,
    Issuer,
    Scope,
    ScopeError,
    TokenServer,
    load_issuer,
    load_scopes,
)
from pipeline.errors import ServiceError

NOW = 1_791_763_200
PUSH = "/token?service=local-registry&scope=repository:a/b:pull,push,delete,*"


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("registry")
    load_or_make_password(folder / "password")
    load_or_make_key(folder / "token.key", folder / "token.crt", ISSUER)
    return folder


@pytest.fixture(scope="module")
def issuer(state: Path) -> Issuer:
    return load_issuer(state)


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def claims_of(issuer: Issuer, token: str) -> dict[str, object]:
    key = x509.load_pem_x509_certificate(issuer.certificate_pem).public_key()
    return jwt.decode(
        token, key, algorithms=["ES256"], audience=SERVICE, options={"verify_exp": False, "verify_nbf": False}
    )


def access_of(issuer: Issuer, target: str, authorization: str | None) -> object:
    status, body = issuer.answer(target, authorization, NOW)
    assert status == 200
    return claims_of(issuer, body["token"])["access"]


def test_nobody_gets_more_than_pull(issuer: Issuer) -> None:
    assert access_of(issuer, PUSH, None) == [{"type": "repository", "name": "a/b", "actions": ["pull"]}]


def test_the_publisher_gets_pull_and_push_and_never_delete(issuer: Issuer) -> None:
    granted = access_of(issuer, PUSH, basic(USER, issuer.password))
    assert granted == [{"type": "repository", "name": "a/b", "actions": ["pull", "push"]}]


def test_the_catalog_is_closed_to_everyone(issuer: Issuer) -> None:
    target = "/token?service=local-registry&scope=registry:catalog:*"
    for authorization in (None, basic(USER, issuer.password)):
        assert access_of(issuer, target, authorization) == [{"type": "registry", "name": "catalog", "actions": []}]


@pytest.mark.parametrize(
    "authorization",
    [
        basic(USER, "wrong"),
        basic("somebody", "x"),
        basic(USER, ""),
        basic("", ""),
        "Basic",
        "Basic !!!",
        "Basic " + base64.b64encode(b"no colon").decode(),
        "Bearer x",
        "",
    ],
)
def test_a_wrong_credential_is_refused_even_to_pull(issuer: Issuer, authorization: str) -> None:
    assert issuer.answer("/token?service=local-registry&scope=repository:a:pull", authorization, NOW)[0] == 401


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/token", 400),
        ("/token?service=other", 400),
        ("/token?service=local-registry&service=local-registry", 400),
        ("/token?service=local-registry&scope=repository:../a:pull", 400),
        ("/token?service=local-registry&scope=" + "repository:a:pull%20" * MAX_SCOPES + "repository:a:pull", 400),
        ("/token?service=local-registry&" + "&".join(f"a{n}=1" for n in range(100)), 400),
        ("/elsewhere", 404),
        ("/health", 200),
        ("/token?service=local-registry", 200),
    ],
)
def test_malformed_requests_are_refused(issuer: Issuer, target: str, status: int) -> None:
    assert issuer.answer(target, None, NOW)[0] == status


@pytest.mark.parametrize(
    "text",
    [
        "",
        "repository:a",
        "repository::pull",
        "repository:A:pull",
        "repository:a:pull,",
        "repository:a/../b:pull",
        "a:b:c:d",
        "repository:a:pull\n",
        "repository(plugin):a:pull",
        "repository:a//b:pull",
        "repository:/a:pull",
    ],
)
def test_a_malformed_scope_is_refused(text: str) -> None:
    with pytest.raises(ScopeError):
        load_scopes([text])


def test_scopes_come_in_one_parameter_or_many() -> None:
    pull, push = Scope("repository", "a", ("pull",)), Scope("repository", "b/c_d.e--f", ("pull", "push"))
    together = "repository:a:pull repository:b/c_d.e--f:pull,push"
    assert load_scopes([together]) == load_scopes(together.split()) == (pull, push)
    assert load_scopes([]) == ()


@given(st.text(max_size=60))
def test_whatever_is_asked_only_pull_is_granted_to_nobody(text: str) -> None:
    try:
        scopes = load_scopes([text])
    except ScopeError:
        return
    assert all(set(scope.granted(None)["actions"]) <= {"pull"} for scope in scopes)


def test_a_token_is_short_lived_and_secrets_stay_out_of_sight(issuer: Issuer) -> None:
    _, body = issuer.answer(PUSH, basic(USER, issuer.password), NOW)
    claims = claims_of(issuer, body["token"])
    assert (claims["iss"], claims["sub"], claims["exp"]) == (ISSUER, USER, NOW + 900)
    assert issuer.password not in repr(issuer) + json.dumps(claims)
    assert "PRIVATE" not in repr(issuer)


def test_secrets_are_made_once_and_private(state: Path) -> None:
    password, key = (state / "password").read_bytes(), (state / "token.key").read_bytes()
    load_or_make_key(state / "token.key", state / "token.crt", ISSUER)
    assert load_or_make_password(state / "password").encode() == password
    assert (state / "token.key").read_bytes() == key
    assert len(password) >= 40
    assert {stat.S_IMODE(path.stat().st_mode) for path in state.iterdir()} == {0o600}


def test_a_secret_that_others_may_read_is_not_used(tmp_path: Path) -> None:
    load_or_make_password(tmp_path / "password")
    (tmp_path / "password").chmod(0o640)
    with pytest.raises(ServiceError, match="open to others"):
        read_private(tmp_path / "password")


@pytest.fixture
def address(issuer: Issuer) -> Iterator[tuple[str, int]]:
    with TokenServer(issuer, 0) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield str(server.server_address[0]), server.server_address[1]
        server.shutdown()


def test_the_server_listens_on_loopback_and_only_answers_get(address: tuple[str, int], issuer: Issuer) -> None:
    assert address[0] == "127.0.0.1"
    connection = http.client.HTTPConnection(*address, timeout=5)
    for _ in range(2):
        connection.request("GET", PUSH, headers={"Authorization": basic(USER, issuer.password)})
        reply = connection.getresponse()
        assert reply.status == 200
        assert reply.headers["Cache-Control"] == "no-store"
        assert json.loads(reply.read())["expires_in"] == 900
    connection.request("POST", "/token", body=b"grant_type=password")
    assert connection.getresponse().status == 501
    connection.close()
