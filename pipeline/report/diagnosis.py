"""What an exported training log shows: coverage, mixed and zero-gradient groups, step times, task by task.

What was not logged is unavailable and counted as such, never as zero; what is inferred says that it is.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from pipeline.model.digest import Digest, digest_of
from pipeline.model.record import Record, canonical_json
from pipeline.report.training_log import LoggedStep, TrainingLog

MAX_GAPS = 1_000


class Availability(Record):
    """In how many of the logged steps a field was there."""

    available: int
    unavailable: int


class StepRange(Record):
    """Steps that are missing, both ends included."""

    first: int
    last: int


class Coverage(Record):
    """Which steps were logged, from the first to the last that were; None where nothing was.

    `missing` lists the first thousand gaps, `missing_steps` counts all. What came before and after is unknown.
    """

    lines: int
    superseded_lines: int
    logged_steps: int
    first_step: int | None
    last_step: int | None
    expected_steps: int
    missing_steps: int
    missing: tuple[StepRange, ...]
    ratio: float | None
    fields: dict[str, Availability]


class Groups(Record):
    """Groups of episodes, one a logged step. Each is in exactly one of mixed, uniform and undetermined.

    Mixed: two rewards differ. Uniform: all rewards are known and equal, which a group of one is. Undetermined: no
    reward, or equal ones beside unknown ones.
    """

    groups: int
    mixed: int
    uniform: int
    undetermined: int
    mixed_ratio: float | None
    episodes: int
    episodes_without_reward: int
    mean_reward: float | None


class Gradients(Record):
    """Gradient norms of the logged steps: exactly zero, finite and not zero, not finite, not logged."""

    zero: int
    nonzero: int
    not_finite: int
    unavailable: int
    zero_ratio: float | None


class StepTimes(Record):
    """Seconds over the steps that logged a time; the 90th percentile is the nearest rank. None where no step did."""

    steps: int
    median_s: float | None
    p90_s: float | None


class OrdinalDiagnosis(Record):
    """One ordinal: the steps whose counter leads to it. `task_id` is None where no list of tasks names it."""

    ordinal: int
    task_id: str | None
    steps: int
    groups: Groups
    gradients: Gradients
    step_times: StepTimes


class OrdinalMapping(Record):
    """How steps were given to tasks. Nothing in a log says it; `inferred` is the best that can be had."""

    basis: Literal["inferred", "unknown"]
    rule: str
    tasks: int | None
    unmapped_steps: int


class TrainingDiagnosis(Record):
    """training-diagnosis.json, with digests of the evidence.json beside it, of the log, and of tasks.jsonl if used.

    `content` is the digest of everything else here: the log is not in the folder, so nothing else shows an edit.
    """

    kind: Literal["training-diagnosis/v1"] = "training-diagnosis/v1"
    evidence: Digest
    log: Digest
    log_bytes: int
    tasks_digest: Digest | None
    coverage: Coverage
    groups: Groups
    gradients: Gradients
    step_times: StepTimes
    mapping: OrdinalMapping
    ordinals: tuple[OrdinalDiagnosis, ...]
    content: Digest | None = None

    def digest_content(self) -> Digest:
        """What `content` must be."""
        return digest_of(canonical_json(self.model_dump(mode="json", exclude={"content"})))


class DiagnosedLog(Record):
    """Where a diagnosis comes from: digests of evidence.json, the log, and tasks.jsonl where it names the tasks."""

    evidence: Digest
    log: Digest
    log_bytes: int
    tasks_digest: Digest | None


def diagnose(log: TrainingLog, source: DiagnosedLog, tasks: int | None, task_ids: Sequence[str]) -> TrainingDiagnosis:
    """Diagnose a log over `tasks` tasks (None: unknown); `task_ids` in the order of tasks.jsonl, or empty.

    Ids are given to ordinals only when there are as many ids as tasks.
    """
    names = task_ids if tasks == len(task_ids) else ()
    counted = [step for step in log.steps if step.task_counter is not None]
    diagnosis = TrainingDiagnosis(
        evidence=source.evidence,
        log=source.log,
        log_bytes=source.log_bytes,
        tasks_digest=source.tasks_digest if names else None,
        coverage=_cover(log),
        groups=_group(log.steps),
        gradients=_gradients(log.steps),
        step_times=_times(log.steps),
        mapping=_map(tasks, bool(names), len(counted), len(log.steps)),
        ordinals=_ordinals(counted, tasks, names) if tasks else (),
    )
    return diagnosis.model_copy(update={"content": diagnosis.digest_content()})


def _cover(log: TrainingLog) -> Coverage:
    numbers = [step.step for step in log.steps]
    expected = numbers[-1] - numbers[0] + 1 if numbers else 0
    gaps = [StepRange(first=a + 1, last=b - 1) for a, b in pairwise(numbers) if b - a > 1]
    return Coverage(
        lines=log.lines,
        superseded_lines=log.superseded_lines,
        logged_steps=len(numbers),
        first_step=numbers[0] if numbers else None,
        last_step=numbers[-1] if numbers else None,
        expected_steps=expected,
        missing_steps=expected - len(numbers),
        missing=tuple(gaps[:MAX_GAPS]),
        ratio=_ratio(len(numbers), expected),
        fields={name: _available(log.steps, name) for name in ("rewards", "grad_norm", "step_time_s", "task_counter")},
    )


def _available(steps: Sequence[LoggedStep], name: str) -> Availability:
    available = sum(getattr(step, name) is not None for step in steps)
    return Availability(available=available, unavailable=len(steps) - available)


def _group(steps: Sequence[LoggedStep]) -> Groups:
    mixed = sum(_is_mixed(step) is True for step in steps)
    uniform = sum(_is_mixed(step) is False for step in steps)
    episodes = [reward for step in steps for reward in step.rewards or ()]
    rewards = [reward for reward in episodes if reward is not None]
    return Groups(
        groups=len(steps),
        mixed=mixed,
        uniform=uniform,
        undetermined=len(steps) - mixed - uniform,
        mixed_ratio=_ratio(mixed, mixed + uniform),
        episodes=len(episodes),
        episodes_without_reward=len(episodes) - len(rewards),
        mean_reward=_mean(rewards),
    )


def _mean(rewards: Sequence[float]) -> float | None:
    if not rewards:
        return None
    try:
        mean = math.fsum(rewards) / len(rewards)
    except OverflowError:
        return None
    return mean if math.isfinite(mean) else None


def _is_mixed(step: LoggedStep) -> bool | None:
    known = {reward for reward in step.rewards or () if reward is not None}
    if len(known) > 1:
        return True
    return None if not step.rewards or None in step.rewards else False


def _gradients(steps: Sequence[LoggedStep]) -> Gradients:
    norms = [step.grad_norm for step in steps if step.grad_norm is not None]
    zero = sum(norm == 0 for norm in norms)
    wild = sum(not math.isfinite(norm) for norm in norms)
    return Gradients(
        zero=zero,
        nonzero=len(norms) - zero - wild,
        not_finite=wild,
        unavailable=len(steps) - len(norms),
        zero_ratio=_ratio(zero, len(norms)),
    )


def _times(steps: Sequence[LoggedStep]) -> StepTimes:
    times = sorted(step.step_time_s for step in steps if step.step_time_s is not None)
    if not times:
        return StepTimes(steps=0, median_s=None, p90_s=None)
    # in integers: 0.9 * 10 is not 9 in floating point on every count
    rank = (9 * len(times) + 9) // 10
    return StepTimes(steps=len(times), median_s=statistics.median(times), p90_s=times[rank - 1])


def _map(tasks: int | None, named: bool, counted: int, steps: int) -> OrdinalMapping:
    if not tasks:
        rule = "the number of tasks is not known: no tasks.jsonl beside this file, and none was stated"
        return OrdinalMapping(basis="unknown", rule=rule, tasks=None, unmapped_steps=steps)
    if not counted:
        rule = "no step was logged with a task counter"
        return OrdinalMapping(basis="unknown", rule=rule, tasks=tasks, unmapped_steps=steps)
    order = "the order of tasks.jsonl" if named else "an order that is not known: no tasks.jsonl of as many tasks"
    rule = f"ordinal = task_counter modulo {tasks}, in {order}"
    return OrdinalMapping(basis="inferred", rule=rule, tasks=tasks, unmapped_steps=steps - counted)


def _ordinals(counted: Sequence[LoggedStep], tasks: int, names: Sequence[str]) -> tuple[OrdinalDiagnosis, ...]:
    steps: dict[int, list[LoggedStep]] = {}
    for step in counted:
        assert step.task_counter is not None, "only counted steps come here"
        steps.setdefault(step.task_counter % tasks, []).append(step)
    ordinals = range(tasks) if names else sorted(steps)
    return tuple(_ordinal(one, names[one] if names else None, steps.get(one, [])) for one in ordinals)


def _ordinal(ordinal: int, task_id: str | None, steps: Sequence[LoggedStep]) -> OrdinalDiagnosis:
    return OrdinalDiagnosis(
        ordinal=ordinal,
        task_id=task_id,
        steps=len(steps),
        groups=_group(steps),
        gradients=_gradients(steps),
        step_times=_times(steps),
    )


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
