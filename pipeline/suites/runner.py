"""Runs scenarios over several containers at once; every declared check has exactly one result, whatever breaks."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import pairwise

from pipeline.errors import PipelineError
from pipeline.model.finding import CheckResult
from pipeline.suites.scenario import Bench, Scenario, play

OpenBench = Callable[[], AbstractContextManager[Bench]]


@dataclass(frozen=True)
class SuiteRun:
    """Results sorted by id, and seconds by id: durations are no part of the evidence."""

    results: tuple[CheckResult, ...]
    durations_s: Mapping[str, float]


@dataclass
class _Board:
    """What the workers share."""

    waiting: deque[Scenario]
    results: list[CheckResult] = field(default_factory=list)
    durations_s: dict[str, float] = field(default_factory=dict)
    failures: list[Exception] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> Scenario | None:
        with self.lock:
            return self.waiting.popleft() if self.waiting else None

    def note(self, check_id: str, duration_s: float) -> None:
        with self.lock:
            self.durations_s[check_id] = duration_s

    def add(self, results: Iterable[CheckResult]) -> None:
        with self.lock:
            self.results.extend(results)


def run_suite(scenarios: Sequence[Scenario], open_bench: OpenBench, workers: int) -> tuple[CheckResult, ...]:
    """All results, sorted by id. See `run_timed_suite`."""
    return run_timed_suite(scenarios, open_bench, workers).results


def run_timed_suite(scenarios: Sequence[Scenario], open_bench: OpenBench, workers: int) -> SuiteRun:
    """Play `scenarios` in `workers` threads with a container each; scenarios that need their own get one more.

    A container that cannot be opened makes its scenarios' checks errors. PipelineError when two checks have one id.
    """
    check_ids(scenarios)
    board = _Board(deque(sorted(scenarios, key=lambda scenario: not scenario.needs_own_container)))
    threads = [threading.Thread(target=_work, args=(board, open_bench)) for _ in range(max(1, workers))]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    finally:
        # After an interrupt the workers end their scenario, remove their container and find no more work.
        board.waiting.clear()
    if board.failures:
        raise board.failures[0]
    return SuiteRun(tuple(sorted(board.results, key=lambda result: result.id)), dict(sorted(board.durations_s.items())))


def check_ids(scenarios: Sequence[Scenario]) -> tuple[str, ...]:
    """Ids of all checks, sorted; PipelineError when one is declared twice."""
    ids = sorted(statement.id for scenario in scenarios for statement in scenario.statements)
    twice = sorted({left for left, right in pairwise(ids) if left == right})
    if twice:
        raise PipelineError("two checks of a suite have one id", where=", ".join(twice[:5]))
    return tuple(ids)


def _work(board: _Board, open_bench: OpenBench) -> None:
    """One worker: its own-container scenarios first, then the others in one container that stays open."""
    while (scenario := board.take()) is not None:
        if scenario.needs_own_container:
            _play_in(board, open_bench, iter((scenario,)))
        else:
            _play_in(board, open_bench, _from(scenario, board))


def _from(first: Scenario, board: _Board) -> Iterable[Scenario]:
    yield first
    while (scenario := board.take()) is not None:
        yield scenario


def _play_in(board: _Board, open_bench: OpenBench, scenarios: Iterable[Scenario]) -> None:
    is_open = False
    try:
        with open_bench() as bench:
            is_open = True
            for scenario in scenarios:
                board.add(play(scenario, bench, board.note))
    except Exception as error:  # noqa: BLE001 - whatever went wrong is what the remaining checks report
        if is_open:
            # Every scenario has its results; only the removal of the container failed.
            board.failures.append(error)
            return
        what = f"no container for this check: {type(error).__name__}: {error}"[:2000]
        for scenario in scenarios:
            board.add(statement.error(what) for statement in scenario.statements)
