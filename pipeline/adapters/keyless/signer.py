"""ports.Signer: an in-toto statement in, a Sigstore bundle out, signed with a key that lives for one signature.

One attempt is token, certificate, signature, timestamp, log entry, in this order, so nothing is logged that lacks a
timestamp. An outage of any of them makes a whole new attempt after a pause, because a certificate lives for ten minutes
and an outage may last longer. A refusal ends at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pipeline.errors import AccessError, ConfigError, HostileInputError, IntegrityError, PipelineError, ServiceError
from pipeline.model.attestation import MAX_STATEMENT_BYTES

if TYPE_CHECKING:
    from requests import PreparedRequest, Response
    from requests.adapters import HTTPAdapter
    from sigstore.dsse import Statement
    from sigstore.models import Bundle
    from sigstore.oidc import IdentityToken
    from sigstore.sign import SigningContext

REQUEST_TIMEOUT_S = 60
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0

_TEMPORARY = frozenset({408, 425, 429, 500, 502, 503, 504})
# The log already holds this entry: its answer was lost. A new attempt has a new key, thus another entry.
_CONFLICT = 409
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class _OutageError(Exception):
    def __init__(self, step: str, what: str) -> None:
        super().__init__(step, what)
        self.step = step
        self.what = what


class KeylessSigner:
    """Signs with the identity behind `token`. `outage_budget_s` bounds the time from first failure to last attempt."""

    def __init__(
        self,
        trust_config: bytes,
        token: Callable[[], str],
        outage_budget_s: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._trust_config = trust_config
        self._token = token
        self._budget_s = outage_budget_s
        self._clock = clock
        self._sleep = sleep
        self._context: SigningContext | None = None

    def sign(self, statement: bytes) -> bytes:
        """See ports.Signer. ServiceError names the step that stayed down; AccessError the one that refused."""
        if len(statement) > MAX_STATEMENT_BYTES:
            raise HostileInputError(f"a statement of {len(statement)} bytes; the limit is {MAX_STATEMENT_BYTES}")
        parsed = _load(statement)
        deadline, pause_s, attempts = self._clock() + self._budget_s, FIRST_PAUSE_S, 0
        while True:
            attempts += 1
            try:
                return self._attempt(parsed).to_json().encode()
            except _OutageError as outage:
                if self._clock() + pause_s > deadline:
                    raise _given_up(outage, attempts, self._budget_s) from None
                self._sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _attempt(self, statement: Statement) -> Bundle:
        from sigstore.sign import Signer

        context, identity = self._signing_context(), self._identity()
        with _step("signing certificate"):
            signer = Signer(identity, context)
        with _step("signature"):
            return signer.sign_dsse(statement)

    def _identity(self) -> IdentityToken:
        from sigstore.oidc import IdentityToken

        with _step("identity token"):
            try:
                token = self._token()
            except ServiceError as error:
                raise _OutageError("identity token", error.what) from None
            return IdentityToken(token)

    def _signing_context(self) -> SigningContext:
        if self._context is None:
            with _step("trust configuration"):
                self._context = _make_context(self._trust_config)
        return self._context


@dataclass(frozen=True)
class _Named:
    """A client of the library whose one network call (`method`) fails as a named step.

    Without it the library only warns when a timestamp cannot be had, and logs a signature that lacks one.
    """

    inner: Any
    method: str
    step: str

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if name != self.method:
            return found

        def call(*arguments: Any) -> Any:
            _bound(self.inner._session, self.inner.url)
            with _step(self.step):
                return found(*arguments)

        return call


def _make_context(trust_config: bytes) -> SigningContext:
    from sigstore.models import ClientTrustConfig
    from sigstore.sign import SigningContext

    config = ClientTrustConfig.from_json(trust_config.decode())
    services = config.signing_config
    fulcio = services.get_fulcio()
    _bound(fulcio.session, fulcio.url)
    rekor: Any = _Named(services.get_tlogs()[0], "create_entry", "log entry")
    if not services.get_tsas():
        raise ConfigError(
            "the trust configuration names no timestamp authority", remedy="name one: we require its word"
        )
    authorities: Any = [_Named(one, "request_timestamp", "signed timestamp") for one in services.get_tsas()]
    return SigningContext(fulcio=fulcio, rekor=rekor, trusted_root=config.trusted_root, tsa_clients=authorities)


def _bound(session: Any, url: str) -> None:
    """Give a session of the library the time limit that it lacks, and keep proxies away from loopback."""
    bounded = _bounded_adapter()
    if not isinstance(session.adapters["http://"], bounded):
        for scheme in ("http://", "https://"):
            session.mount(scheme, bounded())
    if urlsplit(url).hostname in _LOOPBACK:
        session.trust_env = False
    session.max_redirects = 0


@cache
def _bounded_adapter() -> type[HTTPAdapter]:
    from requests.adapters import HTTPAdapter

    class Bounded(HTTPAdapter):
        def send(self, request: PreparedRequest, *arguments: Any, **options: Any) -> Response:
            options["timeout"] = options.get("timeout") or REQUEST_TIMEOUT_S
            return super().send(request, *arguments, **options)

    return Bounded


def _load(statement: bytes) -> Statement:
    from sigstore.dsse import Statement

    try:
        return Statement(statement)
    except Exception as error:
        raise IntegrityError("what is to be signed is not an in-toto statement") from error


@contextmanager
def _step(name: str) -> Iterator[None]:
    """Turn whatever the library raises into an outage, a refusal or an integrity error of this step.

    The text of a foreign exception is dropped with its chain: it may quote a request, and a request carries the token.
    """
    try:
        yield
    except (_OutageError, PipelineError):
        raise
    except Exception as error:  # noqa: BLE001 - nothing that the library does may pass for success
        raise _failure(name, error) from None


def _failure(step: str, error: Exception) -> Exception:
    from requests import ConnectionError as Unreachable
    from requests import HTTPError, Timeout

    for cause in _causes(error):
        if isinstance(cause, HTTPError) and cause.response is not None:
            return _refusal(step, cause.response.status_code)
        if isinstance(cause, Unreachable | Timeout):
            return _OutageError(step, f"no answer ({type(cause).__name__})")
    return IntegrityError(f"signing failed: {type(error).__name__}", where=step)


def _refusal(step: str, status: int) -> Exception:
    if status in _TEMPORARY or status == _CONFLICT:
        return _OutageError(step, f"HTTP {status}")
    if status in (401, 403):
        return AccessError(f"the identity was refused: HTTP {status}", where=step, remedy="check who may sign")
    return ServiceError(f"the request was refused: HTTP {status}", where=step)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _given_up(outage: _OutageError, attempts: int, budget_s: float) -> ServiceError:
    return ServiceError(
        f"signing failed, {attempts} attempts in a budget of {budget_s:g} s: {outage.what}",
        where=outage.step,
        remedy="run publish again when the service answers; nothing was tagged",
    )
