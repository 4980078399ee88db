"""Answering a registry's challenge with a token, without any identity. `registry_credentials` adds one.

Protocol: https://distribution.github.io/distribution/spec/auth/token/ and RFC 9110, section 11.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from pipeline.adapters.registry_errors import (
    MAX_ERROR_BYTES,
    TEMPORARY_STATUSES,
    Refusal,
    load_refusal,
    make_denial,
    make_error,
)
from pipeline.adapters.registry_exchange import Answer, Call
from pipeline.adapters.registry_retry import Clock, Temporary, load_retry_after
from pipeline.adapters.registry_transport import Transport
from pipeline.adapters.registry_url import load_origin, registry_url
from pipeline.errors import AccessError, HostileInputError, PipelineError

MAX_CHALLENGE_CHARS = 4096
MAX_TOKEN_CHARS = 16 << 10
DEFAULT_TOKEN_S = 60.0
LONGEST_TOKEN_S = 3600.0

_TOKEN = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"  # noqa: S105  RFC 9110, 5.6.2: a grammar, not a secret
_SCHEME = re.compile(rf"\s*,?\s*({_TOKEN})(?:\s+(?!=)|\s*$|\s*(?=,))")
_PARAMETER = re.compile(rf'\s*,?\s*({_TOKEN})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|({_TOKEN}))')
_BEARER = re.compile(r"[A-Za-z0-9._~+/=-]+")


@dataclass(frozen=True)
class Scope:
    """What a request needs. Only this is ever asked for, whatever a challenge says that it wants."""

    registry: str
    repository: str
    push: bool = False
    mount_from: str | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """In the token protocol's form."""
        own = f"repository:{self.repository}:{'pull,push' if self.push else 'pull'}"
        return (own, f"repository:{self.mount_from}:pull") if self.mount_from else (own,)


@dataclass(frozen=True)
class Challenge:
    """One challenge of a WWW-Authenticate header; scheme and parameter names in lower case."""

    scheme: str
    parameters: Mapping[str, str]


class Authorizer:
    """Tokens for one client. This one has no identity: it asks token services as anybody."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport, self._clock = transport, clock
        self._held: dict[Scope, tuple[str, float]] = {}

    def authorization(self, scope: Scope) -> str | None:
        """The Authorization header that a challenge earned before, while it lasts."""
        header, until_s = self._held.get(scope, (None, 0.0))
        return header if self._clock.monotonic() < until_s else None

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that must never reach a message."""
        return tuple(header.partition(" ")[2] for header, _ in list(self._held.values()))

    def renew(self, answer: Answer, scope: Scope, action: str) -> None:
        """Earn a header for `scope` from a 401; AccessError when there is none to earn."""
        self._held.pop(scope, None)
        challenges = load_challenges(answer.header("WWW-Authenticate") or "", answer.call.where)
        for challenge in challenges:
            if challenge.scheme == "bearer":
                self._held[scope] = self._fetch_token(challenge, scope, answer.call.where, action)
                return
        if any(challenge.scheme == "basic" for challenge in challenges):
            header = self._basic(registry_url(scope.registry), answer.call.where)
            if header is not None:
                self._held[scope] = header, self._clock.monotonic() + LONGEST_TOKEN_S
                return
        raise self.denial(Refusal(401), action, answer.call.where)

    def denial(self, refusal: Refusal, action: str, where: str) -> AccessError:
        """The error when a registry does not let this client do something."""
        remedy = "the package is not public: make it public in the registry's package settings, or correct its name"
        return make_denial(refusal, action, where, remedy)

    def _basic(self, url: str, where: str) -> str | None:
        """The Basic header for a URL; nobody has none."""
        return None

    def _fetch_token(self, challenge: Challenge, scope: Scope, where: str, action: str) -> tuple[str, float]:
        url = make_token_url(challenge, scope, where)
        call = Call("GET", url, where, {"Accept": "application/json"})
        with self._transport.send(call, self._basic(url, where)) as answer:
            body = answer.read(MAX_ERROR_BYTES)
            if answer.status != 200:
                raise self._token_error(answer, body, action)
        token, lasts_s = _load_token(body, where)
        return f"Bearer {token}", self._clock.monotonic() + 0.8 * lasts_s

    def _token_error(self, answer: Answer, body: bytes, action: str) -> PipelineError | Temporary:
        refusal, where = load_refusal(answer.status, body, self.secrets), answer.call.where
        if refusal.is_denied:
            return self.denial(refusal, action, where)
        error = make_error(refusal, "get a token", where)
        if answer.status in TEMPORARY_STATUSES:
            return Temporary(error, load_retry_after(answer.header("Retry-After"), self._clock))
        return error


def load_challenges(text: str, where: str) -> tuple[Challenge, ...]:
    """Parse WWW-Authenticate strictly; HostileInputError when it is too long or not a list of challenges."""
    if len(text) > MAX_CHALLENGE_CHARS:
        raise HostileInputError(f"a challenge of {len(text)} characters", where=where)
    challenges: list[Challenge] = []
    position = 0
    while text[position:].strip(" ,\t"):
        scheme = _SCHEME.match(text, position)
        if scheme is None:
            raise HostileInputError("a malformed WWW-Authenticate header", where=where)
        parameters, position = _load_parameters(text, scheme.end(), where)
        challenges.append(Challenge(scheme[1].lower(), parameters))
    return tuple(challenges)


def _load_parameters(text: str, position: int, where: str) -> tuple[dict[str, str], int]:
    parameters: dict[str, str] = {}
    while match := _PARAMETER.match(text, position):
        name = match[1].lower()
        if name in parameters:
            raise HostileInputError(f"a challenge with two parameters {name}", where=where)
        parameters[name] = re.sub(r"\\(.)", r"\1", match[2]) if match[2] is not None else match[3]
        position = match.end()
    return parameters, position


def make_token_url(challenge: Challenge, scope: Scope, where: str) -> str:
    """Where to ask for a token; HostileInputError when the realm is out of bounds."""
    realm = challenge.parameters.get("realm", "")
    origin = load_origin(realm, where)
    if origin.is_loopback and not load_origin(registry_url(scope.registry), where).is_loopback:
        raise HostileInputError("a registry elsewhere names a token service on this machine", where=where)
    if "#" in realm:
        raise HostileInputError("a token service's URL with a fragment", where=where)
    query = [("scope", text) for text in scope.texts]
    if service := challenge.parameters.get("service"):
        query.insert(0, ("service", service))
    return realm + ("&" if urlsplit(realm).query else "?") + urlencode(query)


def _load_token(body: bytes, where: str) -> tuple[str, float]:
    """Token and seconds that it lasts, out of a token service's answer."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise HostileInputError("a token service's answer that is not a JSON object", where=where)
    token = document.get("token") or document.get("access_token")
    if not isinstance(token, str) or len(token) > MAX_TOKEN_CHARS or _BEARER.fullmatch(token) is None:
        raise HostileInputError("a token service's answer without a well-formed token", where=where)
    lasts_s = document.get("expires_in")
    if isinstance(lasts_s, bool) or not isinstance(lasts_s, int) or lasts_s <= 0:
        return token, DEFAULT_TOKEN_S
    return token, float(min(lasts_s, int(LONGEST_TOKEN_S)))
