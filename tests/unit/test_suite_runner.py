"""Suites: every declared check has one result whatever breaks, sorted, timed, in as many containers as asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, cast

import pytest

from pipeline.errors import PipelineError, ServiceError
from pipeline.suites.runner import check_ids, run_suite, run_timed_suite
from pipeline.suites.scenario import Bench, Observation, Scenario, Statement, play


def bench() -> Bench:
    return Bench(cast(Any, None), cast(Any, None), cast(Any, None), cast(Any, None))


def scenario(
    name: str, *observed: Any, alone: bool = False, run: Callable[[Bench], Iterator[Observation]] | None = None
):
    statements = tuple(Statement(f"{name}.{index}", "equals its index", index) for index in range(len(observed)))

    def default(bench: Bench) -> Iterator[Observation]:
        yield from ((f"{name}.{index}", value) for index, value in enumerate(observed))

    return Scenario(name, statements, run or default, alone)


class Benches:
    """Counts what is open, and fails when told to."""

    def __init__(self, failures: int = 0, close_fails: bool = False) -> None:
        self.opened = self.open = self.most = 0
        self._failures, self._close_fails, self._lock = failures, close_fails, threading.Lock()

    def __call__(self) -> AbstractContextManager[Bench]:
        return self._bench()

    @contextmanager
    def _bench(self) -> Iterator[Bench]:
        with self._lock:
            self.opened += 1
            if self.opened <= self._failures:
                raise ServiceError("the engine is down")
            self.open += 1
            self.most = max(self.most, self.open)
        try:
            yield bench()
        finally:
            with self._lock:
                self.open -= 1
        if self._close_fails:
            raise ServiceError("could not remove the container")


def test_results_are_sorted_and_judged() -> None:
    benches = Benches()
    run = run_timed_suite([scenario("b", 0, 9), scenario("a", 0)], benches, 1)
    assert [(result.id, result.outcome) for result in run.results] == [
        ("a.0", "pass"),
        ("b.0", "pass"),
        ("b.1", "fail"),
    ]
    assert list(run.durations_s) == ["a.0", "b.0", "b.1"]
    assert (benches.opened, benches.open) == (1, 0)


def test_scenarios_that_wear_a_container_out_get_their_own() -> None:
    benches = Benches()
    run_suite(
        [scenario("a", 0), scenario("b", 0, alone=True), scenario("c", 0), scenario("d", 0, alone=True)], benches, 1
    )
    assert benches.opened == 3


def test_workers_run_at_the_same_time() -> None:
    meeting = threading.Barrier(2, timeout=10)

    def meet(bench: Bench) -> Iterator[Observation]:
        meeting.wait()
        yield from ()

    benches = Benches()
    results = run_suite([scenario("a", run=meet), scenario("b", run=meet), scenario("c", 0)], benches, 2)
    assert [result.outcome for result in results] == ["pass"]
    assert benches.most == 2


def test_a_container_that_does_not_open_makes_errors_not_skips() -> None:
    results = run_suite([scenario("a", 0, 1), scenario("b", 0)], Benches(failures=1), 1)
    assert [(result.id, result.outcome) for result in results] == [("a.0", "error"), ("a.1", "error"), ("b.0", "error")]
    assert "the engine is down" in str(results[0].observed)


def test_a_container_that_cannot_be_removed_is_reported() -> None:
    with pytest.raises(ServiceError, match="remove"):
        run_suite([scenario("a", 0)], Benches(close_fails=True), 1)


def test_one_id_twice_is_refused_before_anything_runs() -> None:
    benches = Benches()
    with pytest.raises(PipelineError, match="one id"):
        run_suite([scenario("a", 0), scenario("a", 0)], benches, 1)
    assert benches.opened == 0
    assert check_ids([scenario("b", 0), scenario("a", 0)]) == ("a.0", "b.0")


def test_a_scenario_that_breaks_leaves_errors_for_what_it_has_not_seen() -> None:
    def breaks(bench: Bench) -> Iterator[Observation]:
        yield "a.0", 0
        raise RuntimeError("lost")

    results = play(scenario("a", 0, 1, 2, run=breaks), bench())
    assert [(result.id, result.outcome) for result in results] == [("a.0", "pass"), ("a.1", "error"), ("a.2", "error")]


@pytest.mark.parametrize(
    ("expected", "observed", "outcome"),
    [
        (1, 1.0, "pass"),
        (1, True, "fail"),
        (0, False, "fail"),
        ([1, {"a": None}], [1, {"a": None}], "pass"),
        ("1", 1, "fail"),
    ],
)
def test_json_values_are_compared_by_kind(expected: Any, observed: Any, outcome: str) -> None:
    assert Statement("a", "text", expected).judge(observed).outcome == outcome
