"""A behaviour suite is a list of scenarios; a scenario plays episodes in one container and yields check results.

A scenario declares the ids of its checks beforehand. If it crashes or stops early, every id that it has not yielded is
an `error`: a check that could not run is never a skip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Protocol

from pydantic import JsonValue

from pipeline.model.finding import CheckResult
from pipeline.model.oci import ImageConfig, Manifest
from pipeline.ports import Arena, Container


def _absent(url: str, task_id: str | None = None) -> JsonValue:
    raise LookupError("this bench was opened without the framework's tools")


class PlayFramework(Protocol):
    """An episode that the framework's own client plays; an image of several tasks needs a task id."""

    def __call__(self, url: str, task_id: str | None = None) -> JsonValue:
        """Reward of the reset, output of one action, and whether the finish ended it."""


@dataclass(frozen=True)
class Bench:
    """What a scenario works with: a running container, and a way to open WebSockets to it.

    `validate` and `play_framework` take the container's URL: the framework's endpoint validation, and an episode that
    its own client plays. `ready_s` is how long the container took to answer /health.
    """

    container: Container
    open_arena: Callable[[], Arena]
    manifest: Manifest
    config: ImageConfig
    validate: Callable[[str], JsonValue] = _absent
    play_framework: PlayFramework = _absent
    ready_s: float | None = None


@dataclass(frozen=True)
class Statement:
    """Of a check, before it ran: a stable id, one line that a reviewer can read, and what is expected."""

    id: str
    text: str
    expected: JsonValue

    def judge(self, observed: JsonValue) -> CheckResult:
        """pass when observed equals expected in JSON terms (a boolean is never a number), else fail."""
        outcome = "pass" if same_json(self.expected, observed) else "fail"
        return CheckResult(
            id=self.id,
            statement=self.text,
            expected=self.expected,
            observed=observed,
            outcome=outcome,  # type: ignore[arg-type]
        )

    def error(self, what: str) -> CheckResult:
        """The check could not run."""
        return CheckResult(id=self.id, statement=self.text, expected=self.expected, observed=what, outcome="error")


Observation = tuple[str, JsonValue]


@dataclass(frozen=True)
class Scenario:
    """`run` yields (check id, observed value) for each of `statements`, in any order, each once.

    One that wears its container out (stops it, fills it, counts its processes) needs its own.
    """

    name: str
    statements: tuple[Statement, ...]
    run: Callable[[Bench], Iterator[Observation]]
    needs_own_container: bool = False


def play(
    scenario: Scenario, bench: Bench, note_duration: Callable[[str, float], None] | None = None
) -> tuple[CheckResult, ...]:
    """Run one scenario to the end; every declared id has exactly one result. Durations are in seconds."""
    open_ids = {statement.id: statement for statement in scenario.statements}
    results: list[CheckResult] = []
    failure = "the scenario ended without observing this"
    begun = monotonic()
    try:
        for check_id, observed in scenario.run(bench):
            results.append(open_ids.pop(check_id).judge(observed))
            if note_duration is not None:
                note_duration(check_id, monotonic() - begun)
            begun = monotonic()
    except Exception as error:  # noqa: BLE001 - whatever went wrong is what the remaining checks report
        failure = f"{type(error).__name__}: {error}"[:2000]
    results += [statement.error(failure) for statement in open_ids.values()]
    return tuple(results)


def same_json(left: JsonValue, right: JsonValue) -> bool:
    """Equality of JSON values: 1 equals 1.0, true equals only true."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_json(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    return left == right
