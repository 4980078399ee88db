"""A token server for the local registry: anyone may pull, who has the generated credential may also push.

Protocol: https://distribution.github.io/distribution/spec/auth/token/ and .../auth/jwt/. A client that was refused by
the registry asks here for a token with the scopes that it needs; the registry checks the token's signature and what it
grants. Run as `python -m pipeline.embedded.tokens STATE_DIR PORT`.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import re
import secrets
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from pipeline.embedded.credentials import read_private
from pipeline.embedded.loopback import HOST

USER = "publisher"
ISSUER = "local-token-server"
SERVICE = "local-registry"
LIFETIME_S = 900
MAX_SCOPES = 16
_CLOCK_SKEW_S = 10
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_SCOPE = re.compile(
    rf"(?P<type>[a-z]+):(?P<name>(?:{_COMPONENT}(?:/{_COMPONENT})*)):(?P<actions>(?:[a-z]+|\*)(?:,(?:[a-z]+|\*))*)"
)


class ScopeError(ValueError):
    """A scope that is not of the protocol's form."""


@dataclass(frozen=True)
class Scope:
    """What a client asks for."""

    kind: str
    name: str
    actions: tuple[str, ...]

    def granted(self, user: str | None) -> dict[str, Any]:
        """The `access` entry of a token: of repositories only, and of the actions only pull, and push with a user."""
        allowed = ("pull", "push") if user else ("pull",)
        actions = [action for action in allowed if action in self.actions and self.kind == "repository"]
        return {"type": self.kind, "name": self.name, "actions": actions}


def load_scopes(values: Sequence[str]) -> tuple[Scope, ...]:
    """Parse `scope` parameters (each may hold several, separated by spaces); ScopeError for anything malformed."""
    texts = [text for value in values for text in value.split(" ")]
    if len(texts) > MAX_SCOPES:
        raise ScopeError(f"more than {MAX_SCOPES} scopes")
    return tuple(_load_scope(text) for text in texts)


def _load_scope(text: str) -> Scope:
    match = _SCOPE.fullmatch(text)
    if match is None:
        raise ScopeError("malformed scope")
    return Scope(match["type"], match["name"], tuple(match["actions"].split(",")))


@dataclass(frozen=True)
class Issuer:
    """Who may do what, and the key that says so. Secrets are not shown in its representation."""

    password: str = field(repr=False)
    key_pem: bytes = field(repr=False)
    certificate_pem: bytes = field(repr=False)

    def load_user(self, authorization: str | None) -> str | None:
        """The user of a Basic header, None without a header; PermissionError for anything else."""
        if authorization is None:
            return None
        name, password = _load_basic(authorization)
        # Both are compared, in constant time, so that the answer's time says nothing of either.
        known, right = hmac.compare_digest(name, USER.encode()), hmac.compare_digest(password, self.password.encode())
        if not (known and right):
            raise PermissionError
        return USER

    def make_token(self, user: str | None, scopes: Sequence[Scope], now_s: int) -> str:
        """A JWT of the registry's form, signed with ES256, valid for LIFETIME_S."""
        certificate = x509.load_pem_x509_certificate(self.certificate_pem).public_bytes(Encoding.DER)
        claims = {
            "iss": ISSUER,
            "sub": user or "",
            "aud": SERVICE,
            "iat": now_s,
            "nbf": now_s - _CLOCK_SKEW_S,
            "exp": now_s + LIFETIME_S,
            "jti": secrets.token_hex(8),
            "access": [scope.granted(user) for scope in scopes],
        }
        chain = {"x5c": [base64.b64encode(certificate).decode("ascii")]}
        return jwt.encode(claims, self.key_pem, algorithm="ES256", headers=chain)

    def answer(self, target: str, authorization: str | None, now_s: int) -> tuple[int, Mapping[str, Any]]:
        """Status and JSON body of GET `target`."""
        parts = urlsplit(target)
        if parts.path == "/health":
            return 200, {}
        if parts.path != "/token":
            return 404, _error("NOT_FOUND")
        try:
            query = parse_qs(parts.query, keep_blank_values=True, strict_parsing=True, max_num_fields=2 * MAX_SCOPES)
            if query.get("service") != [SERVICE]:
                return 400, _error("UNKNOWN_SERVICE")
            token = self.make_token(self.load_user(authorization), load_scopes(query.get("scope", ())), now_s)
        except PermissionError:
            return 401, _error("UNAUTHORIZED")
        except ValueError:
            return 400, _error("BAD_REQUEST")
        return 200, {"token": token, "access_token": token, "expires_in": LIFETIME_S}


def _load_basic(authorization: str) -> tuple[bytes, bytes]:
    scheme, _, encoded = authorization.partition(" ")
    try:
        decoded = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise PermissionError from None
    name, colon, password = decoded.partition(b":")
    if scheme.lower() != "basic" or not colon:
        raise PermissionError
    return name, password


def _error(code: str) -> dict[str, Any]:
    return {"errors": [{"code": code}]}


class TokenServer(ThreadingHTTPServer):
    """Listens on loopback and answers from one issuer."""

    daemon_threads = True

    def __init__(self, issuer: Issuer, port: int) -> None:
        super().__init__((HOST, port), _TokenRequest)
        self.issuer = issuer

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is not an error; anything else is, and is shown."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _TokenRequest(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10
    server: TokenServer

    def do_GET(self) -> None:
        """Answer and keep the connection."""
        status, body = self.server.issuer.answer(self.path, self.headers.get("Authorization"), int(time.time()))
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing: a request line holds what a client chose to put there, which may be a secret."""


def load_issuer(state_path: Path) -> Issuer:
    """The issuer whose secrets are in a folder: `password`, `token.key`, `token.crt`."""
    password = read_private(state_path / "password").decode("ascii")
    return Issuer(password, read_private(state_path / "token.key"), read_private(state_path / "token.crt"))


if __name__ == "__main__":
    TokenServer(load_issuer(Path(sys.argv[1])), int(sys.argv[2])).serve_forever()
