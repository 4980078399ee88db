"""Time for tests of the registry client: sleeping takes none, and is written down."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.adapters.registry import Clock

WALL_S = 1_791_800_000.0


class ManualClock:
    """`pauses` are the sleeps in seconds; `on_sleep` lets another actor move meanwhile."""

    def __init__(self, on_sleep: Callable[[], None] = lambda: None) -> None:
        self.now_s = 1000.0
        self.pauses: list[float] = []
        self._on_sleep = on_sleep

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now_s, lambda: WALL_S + self.now_s, self._sleep, lambda: 0.5)

    def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now_s += seconds
        self._on_sleep()
