"""One measured value: the median of its runs, their spread, and how it compares with what is to be reached."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Literal

from pipeline.bench.goals import Goal, Unit
from pipeline.errors import PipelineError
from pipeline.model.record import Record

Outcome = Literal["reached", "falls short", "not measured", "to know"]
# how many of a unit are one of the measured base: seconds, bytes, a share, a number
_SCALE: dict[Unit, float] = {"bytes": 1, "MB": 1e-6, "MB/s": 1e-6, "s": 1, "ms": 1e3, "%": 100, "count": 1}


class Figure(Record):
    """A value in its goal's unit. `value` is None where it could not be measured here; `note` says why.

    `reference` is what was measured in the same run to compare with, in words.
    """

    group: str
    id: str
    value: float | None
    low: float | None = None
    high: float | None = None
    runs: int = 0
    reference: str = ""
    note: str = ""


def make_figure(
    group: str, figure: str, goal: Goal, samples: Sequence[float], *, reference: str = "", note: str = ""
) -> Figure:
    """The median of samples in seconds, bytes, shares or numbers; PipelineError when there is none."""
    if not samples:
        raise PipelineError("a figure without a sample", where=f"{group}: {figure}")
    values = [sample * _SCALE[goal.unit] for sample in samples]
    return Figure(
        group=group,
        id=figure,
        value=float(median(values)),
        low=float(min(values)),
        high=float(max(values)),
        runs=len(values),
        reference=reference,
        note=note,
    )


def not_measured(group: str, figure: str, why: str) -> Figure:
    """A figure that this run cannot have, and why."""
    return Figure(group=group, id=figure, value=None, note=why)


def judge(figure: Figure, goal: Goal) -> Outcome:
    """The value against what is to be reached; exactly that is reached."""
    if figure.value is None:
        return "not measured"
    if goal.reach is None:
        return "to know"
    good = figure.value >= goal.reach if goal.higher else figure.value <= goal.reach
    return "reached" if good else "falls short"


def ratio(figure: Figure, goal: Goal) -> float | None:
    """Measured over reach; None where either is absent, or nothing is what is to be reached."""
    if figure.value is None or not goal.reach:
        return None
    return figure.value / goal.reach


def time_runs(action: Callable[[], object], runs: int, prepare: Callable[[], object] = lambda: None) -> list[float]:
    """Seconds of each of `runs` sequential calls; `prepare` runs before each, untimed."""
    samples = []
    for _ in range(runs):
        prepare()
        started = time.perf_counter()
        action()
        samples.append(time.perf_counter() - started)
    return samples
