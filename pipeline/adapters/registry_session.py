"""A call with everything around it: the token dance, once; the meaning of a refusal; retries inside the budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pipeline.adapters.registry_auth import Authorizer, Scope
from pipeline.adapters.registry_errors import MAX_ERROR_BYTES, TEMPORARY_STATUSES, load_refusal, make_error
from pipeline.adapters.registry_exchange import Answer, Call, Meter
from pipeline.adapters.registry_retry import Attempts, Clock, RetryBudget, Temporary, load_retry_after, run
from pipeline.adapters.registry_transport import REDIRECTS, Transport
from pipeline.adapters.registry_url import load_origin
from pipeline.errors import HostileInputError, PipelineError, ServiceError

Result = TypeVar("Result")


class Session:
    """What reading and writing share. Thread-safe: urllib3's pool is, and a token fetched twice does no harm."""

    def __init__(self, transport: Transport, authorizer: Authorizer, budget: RetryBudget, clock: Clock) -> None:
        self._transport, self._authorizer = transport, authorizer
        self._budget, self.clock = budget, clock
        self.meter = Meter()

    def run(self, operation: Callable[[], Result]) -> Result:
        """An operation with retries; it must be safe to repeat."""
        return run(operation, self._budget, self.clock)

    def attempts(self) -> Attempts:
        """For an operation that resumes where it broke off."""
        return Attempts(self._budget, self.clock)

    def open(self, call: Call, scope: Scope, action: str, ok: frozenset[int]) -> Answer:
        """Send once; the answer's status is in `ok`. Temporary for what may pass, a pipeline error for what will not.

        `action` completes "cannot …".
        """
        answer = self._send(call, scope)
        if answer.status == 401 and not answer.is_redirected:
            with answer:
                answer.read(MAX_ERROR_BYTES)
                self._authorizer.renew(answer, scope, action)
            answer = self._send(call, scope)
        if answer.status in ok:
            return answer
        with answer:
            raise self._refusal(answer, action, is_elsewhere=answer.is_redirected)

    def open_at(self, call: Call, scope: Scope, action: str, ok: frozenset[int], home: str) -> Answer:
        """`open` for a URL that the registry named: on another origin than `home` it goes without Authorization."""
        if load_origin(call.url, call.where) == load_origin(home, call.where):
            return self.open(call, scope, action, ok)
        answer = self._transport.send(call, None)
        if answer.status in ok:
            return answer
        with answer:
            raise self._refusal(answer, action, is_elsewhere=True)

    def close(self) -> None:
        """Close idle connections."""
        self._transport.close()

    def _send(self, call: Call, scope: Scope) -> Answer:
        return self._transport.send(call, self._authorizer.authorization(scope))

    def _refusal(self, answer: Answer, action: str, *, is_elsewhere: bool) -> PipelineError | Temporary:
        where = answer.call.where
        if answer.status in REDIRECTS:
            return HostileInputError(f"cannot {action}: an unexpected redirect ({answer.status})", where=where)
        if answer.status < 400:
            return HostileInputError(f"cannot {action}: an unexpected status {answer.status}", where=where)
        refusal = load_refusal(answer.status, _read_error(answer), self._authorizer.secrets)
        if is_elsewhere and refusal.is_denied:
            host = load_origin(answer.url, where).host
            return ServiceError(f"cannot {action}: the storage host {host} answered {refusal}", where=where)
        if refusal.is_denied:
            return self._authorizer.denial(refusal, action, where)
        error = make_error(refusal, action, where)
        if answer.status in TEMPORARY_STATUSES:
            return Temporary(error, load_retry_after(answer.header("Retry-After"), self.clock))
        return error


def _read_error(answer: Answer) -> bytes:
    """An error body, which is decoration: one that is too long or breaks off says nothing."""
    try:
        return answer.read(MAX_ERROR_BYTES)
    except (HostileInputError, Temporary):
        return b""
