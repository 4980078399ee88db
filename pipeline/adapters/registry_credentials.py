"""Credentials of one registry, where they come from, and the only code that turns them into a header.

The anonymous client never imports this module.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass, field
from typing import Any

from pipeline.adapters.registry_auth import Authorizer
from pipeline.adapters.registry_errors import Refusal, make_denial
from pipeline.adapters.registry_retry import Clock
from pipeline.adapters.registry_transport import Transport
from pipeline.adapters.registry_url import Origin, load_origin, registry_url
from pipeline.errors import AccessError

_HUB_KEYS = ("https://index.docker.io/v1/", "index.docker.io", "docker.io")


@dataclass(frozen=True)
class Credentials:
    """User and password for ONE registry host. `token_hosts` are further hosts whose token service may see them."""

    registry: str
    user: str
    password: str = field(repr=False)
    token_hosts: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"credentials of {self.user} for {self.registry}"

    def __post_init__(self) -> None:
        if not self.user or not self.password or ":" in self.user:
            raise AccessError(
                "credentials need a user (without a colon) and a password",
                where=self.registry,
                remedy="set both, or log in with docker login",
            )


def load_docker_credentials(text: str, registry: str, where: str) -> Credentials | None:
    """Credentials of `registry` in a Docker config file's text; None when it has none. `where` is the file.

    AccessError for a file that is not a Docker config, and for a credential helper: it is a program, which the
    pipeline does not run.
    """
    config = _load_object(text, where)
    entry = _find_entry(config.get("auths"), registry)
    if encoded := entry.get("auth"):
        return _decode(encoded, registry, where)
    if isinstance(entry.get("username"), str) and isinstance(entry.get("password"), str):
        return Credentials(registry, entry["username"], entry["password"])
    helpers = config.get("credHelpers")
    if entry.get("identitytoken") or config.get("credsStore") or (isinstance(helpers, dict) and registry in helpers):
        raise AccessError(
            f"the credentials for {registry} are kept by a credential helper or as an identity token",
            where=where,
            remedy="give user and password in the environment instead (see the README's production target)",
        )
    return None


class CredentialedAuthorizer(Authorizer):
    """Adds an identity, for the registry that it belongs to and nobody else."""

    def __init__(self, transport: Transport, clock: Clock, credentials: Credentials) -> None:
        super().__init__(transport, clock)
        self._credentials = credentials
        self._header = _basic_header(credentials)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that must never reach a message."""
        return (self._credentials.password, self._header.partition(" ")[2], *super().secrets)

    def denial(self, refusal: Refusal, action: str, where: str) -> AccessError:
        """The error when the registry does not let this user do something."""
        user = self._credentials.user
        if refusal.status == 403:
            remedy = f"give the user {user} the right to write this package, or log in as another"
        else:
            remedy = (
                f"check the password or token of {user}: it may be wrong, expired or lack the right to write packages"
            )
        return make_denial(refusal, action, where, remedy)

    def _basic(self, url: str, where: str) -> str | None:
        destination = load_origin(url, where)
        home = load_origin(registry_url(self._credentials.registry), where)
        if self._trusts(destination, home):
            return self._header
        raise AccessError(
            f"the registry asks to send its credentials to another host: {destination.host}",
            where=where,
            remedy="when that token service is the registry's own, name it in Credentials.token_hosts",
        )

    def _trusts(self, destination: Origin, home: Origin) -> bool:
        if destination == home or (destination.is_loopback and home.is_loopback):
            return True
        return destination.scheme == "https" and destination.host in self._credentials.token_hosts


def _basic_header(credentials: Credentials) -> str:
    pair = f"{credentials.user}:{credentials.password}".encode()
    return "Basic " + base64.b64encode(pair).decode("ascii")


def _load_object(text: str, where: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise AccessError(
            "not a Docker config file", where=where, remedy="remove it and log in again with docker login"
        )
    return document


def _find_entry(auths: object, registry: str) -> dict[str, Any]:
    keys = (registry, f"https://{registry}", f"https://{registry}/", *(_HUB_KEYS if registry == "docker.io" else ()))
    if isinstance(auths, dict):
        for key in keys:
            if isinstance(auths.get(key), dict):
                return dict(auths[key])
    return {}


def _decode(encoded: object, registry: str, where: str) -> Credentials:
    try:
        user, colon, password = base64.b64decode(str(encoded), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        user = colon = password = ""
    if not colon:
        raise AccessError(
            f"the entry for {registry} is damaged", where=where, remedy=f"log in again: docker login {registry}"
        )
    return Credentials(registry, user, password.rstrip("\0"))
