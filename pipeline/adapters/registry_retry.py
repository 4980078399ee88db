"""Retrying what says that it is temporary, inside a stated budget, with clock and chance handed in."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TypeVar

from pipeline.errors import PipelineError

Result = TypeVar("Result")


class Temporary(Exception):  # noqa: N818  a signal inside the client, never seen outside it
    """A failure that may pass. Carries the error to raise when the budget is spent, and what Retry-After asked."""

    def __init__(self, error: PipelineError, retry_after_s: float | None = None) -> None:
        super().__init__(error.what)
        self.error = error
        self.retry_after_s = retry_after_s


@dataclass(frozen=True)
class Clock:
    """Time and chance; tests hand in their own. `jitter` gives 0 to 1."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.SystemRandom().random


SYSTEM_CLOCK = Clock()


@dataclass(frozen=True)
class RetryBudget:
    """Of one operation. `waiting_s` bounds the sum of pauses; each attempt has limits of its own."""

    attempts: int = 6
    waiting_s: float = 120.0
    first_wait_s: float = 0.5
    longest_wait_s: float = 30.0


DEFAULT_BUDGET = RetryBudget()


class Attempts:
    """The attempts of one operation."""

    def __init__(self, budget: RetryBudget, clock: Clock) -> None:
        self._budget, self._clock = budget, clock
        self._failed = 0
        self._waited_s = 0.0

    def pause(self, temporary: Temporary) -> None:
        """Count a failure and wait; raises its error when attempts or seconds are spent."""
        self._failed += 1
        wait_s = self._wait_s(temporary.retry_after_s)
        if self._failed >= self._budget.attempts or self._waited_s + wait_s > self._budget.waiting_s:
            error = temporary.error
            error.what += f" (gave up after {self._failed} attempts and {self._waited_s:.0f} s of waiting)"
            raise error from None
        self._waited_s += wait_s
        self._clock.sleep(wait_s)

    def _wait_s(self, retry_after_s: float | None) -> float:
        if retry_after_s is not None:
            return min(retry_after_s, self._budget.longest_wait_s)
        backoff = self._budget.first_wait_s * 2.0 ** (self._failed - 1)
        return min(backoff, self._budget.longest_wait_s) * (0.5 + self._clock.jitter() / 2)


def run(operation: Callable[[], Result], budget: RetryBudget, clock: Clock) -> Result:
    """Call until it gives a result; only Temporary is retried, everything else passes through at once."""
    attempts = Attempts(budget, clock)
    while True:
        try:
            return operation()
        except Temporary as temporary:
            attempts.pause(temporary)


def load_retry_after(text: str | None, clock: Clock) -> float | None:
    """Seconds that a Retry-After header asks for (RFC 9110, 10.2.3: seconds or an HTTP date); None when unreadable."""
    if text is None or len(text) > 64:
        return None
    if text.strip().isascii() and text.strip().isdigit():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - clock.wall())
    except (ValueError, OverflowError):
        return None
