"""Credentials: for one host, never shown, out of a Docker config file."""

from __future__ import annotations

import base64
import json

import pytest

from pipeline.adapters.registry import Credentials, load_docker_credentials
from pipeline.adapters.registry_credentials import CredentialedAuthorizer
from pipeline.adapters.registry_exchange import Limits
from pipeline.adapters.registry_retry import Clock
from pipeline.adapters.registry_transport import Transport
from pipeline.errors import AccessError

WHERE = "~/.docker/config.json"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def load(config: object, registry: str = "ghcr.io") -> Credentials | None:
    return load_docker_credentials(json.dumps(config), registry, WHERE)


@pytest.mark.parametrize("key", ["ghcr.io", "https://ghcr.io", "https://ghcr.io/"])
def test_an_entry_is_found_by_its_host(key: str) -> None:
    found = load({"auths": {"other.test": {"auth": encoded("a:b")}, key: {"auth": encoded("me:pass:word")}}})
    assert found == Credentials("ghcr.io", "me", "pass:word")


def test_docker_hub_is_found_under_its_old_name() -> None:
    found = load({"auths": {"https://index.docker.io/v1/": {"auth": encoded("me:x")}}}, "docker.io")
    assert found == Credentials("docker.io", "me", "x")


def test_user_and_password_in_plain_work_too() -> None:
    assert load({"auths": {"ghcr.io": {"username": "me", "password": "x"}}}) == Credentials("ghcr.io", "me", "x")


@pytest.mark.parametrize(
    "config", [{}, {"auths": {}}, {"auths": {"ghcr.io.evil.test": {"auth": encoded("a:b")}}}, {"auths": 7}]
)
def test_no_entry_is_no_credentials(config: object) -> None:
    assert load(config) is None


@pytest.mark.parametrize(
    "config",
    [
        {"credsStore": "desktop", "auths": {"ghcr.io": {}}},
        {"credHelpers": {"ghcr.io": "gcloud"}},
        {"auths": {"ghcr.io": {"identitytoken": "x"}}},
    ],
)
def test_credential_helpers_are_not_run(config: object) -> None:
    with pytest.raises(AccessError, match="helper") as raised:
        load(config)
    assert "environment" in raised.value.remedy
    assert raised.value.where == WHERE


@pytest.mark.parametrize("auth", ["%%%", encoded("no colon"), encoded("user:"), encoded(":password"), "/w==", 7])
def test_a_damaged_entry_says_so_without_showing_it(auth: object) -> None:
    with pytest.raises(AccessError) as raised:
        load({"auths": {"ghcr.io": {"auth": auth}}})
    for shown in (f" {auth} ", "no colon", ":password"):
        assert shown not in f" {raised.value} "


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000])
def test_a_file_that_is_no_config_is_refused(text: str) -> None:
    with pytest.raises(AccessError, match="not a Docker config"):
        load_docker_credentials(text, "ghcr.io", WHERE)


def test_a_password_is_never_shown() -> None:
    credentials = Credentials("ghcr.io", "me", "top-secret")
    assert "top-secret" not in f"{credentials} {credentials!r} {[credentials]} {(credentials,)!s}"
    assert "me" in str(credentials)


@pytest.mark.parametrize(("user", "password"), [("", "x"), ("x", ""), ("a:b", "x")])
def test_half_a_login_is_refused(user: str, password: str) -> None:
    with pytest.raises(AccessError):
        Credentials("ghcr.io", user, password)


@pytest.mark.parametrize(
    ("url", "is_told"),
    [
        ("https://ghcr.io/token", True),
        ("https://ghcr.io:443/token", True),
        ("https://auth.ghcr.test/token", True),
        ("https://ghcr.io:8443/token", False),
        ("https://ghcr.io.evil.test/token", False),
        ("http://127.0.0.1/token", False),
    ],
)
def test_who_is_told_the_password(url: str, is_told: bool) -> None:
    credentials = Credentials("ghcr.io", "me", "x", frozenset({"auth.ghcr.test"}))
    authorizer = CredentialedAuthorizer(Transport(Limits()), Clock(), credentials)
    if is_told:
        assert authorizer._basic(url, "x") == "Basic " + encoded("me:x")
    else:
        with pytest.raises(AccessError, match="another host"):
            authorizer._basic(url, "x")
