"""Reading an exported training log: JSON Lines, one line a step, made by somebody else and limited in every way."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pipeline.errors import HostileInputError

MAX_LOG_BYTES = 128 << 20
MAX_LINE_BYTES = 1 << 20
MAX_LINES = 200_000
MAX_REWARDS = 4_096
MAX_EPISODES = 4_000_000
MAX_INTEGER = 10**12


@dataclass(frozen=True)
class LoggedStep:
    """One optimiser step on one group of episodes of a task. None is: not logged.

    A reward that is None or not finite is None. `grad_norm` may be infinite or NaN: a diagnosis says so.
    """

    step: int
    rewards: tuple[float | None, ...] | None
    grad_norm: float | None
    step_time_s: float | None
    task_counter: int | None


@dataclass(frozen=True)
class TrainingLog:
    """Steps in ascending order. A step that was logged again, as after a restart, counts as it was logged last."""

    steps: tuple[LoggedStep, ...]
    lines: int
    superseded_lines: int


def load_log(raw: bytes, where: str) -> TrainingLog:
    """Parse a log; HostileInputError with the line for what breaks a limit or is not of the format."""
    if len(raw) > MAX_LOG_BYTES:
        raise HostileInputError(f"larger than the limit of {MAX_LOG_BYTES} bytes", where=where)
    steps: dict[int, LoggedStep] = {}
    lines = episodes = 0
    for number, line in _lines(raw):
        lines += 1
        if lines > MAX_LINES:
            raise HostileInputError(f"more than {MAX_LINES} lines", where=where)
        step = _load_step(line, f"{where}:{number}")
        episodes += len(step.rewards or ())
        if episodes > MAX_EPISODES:  # each is a number in memory, and takes two bytes in the file
            raise HostileInputError(f"more than {MAX_EPISODES} rewards", where=where)
        steps[step.step] = step
    return TrainingLog(tuple(steps[number] for number in sorted(steps)), lines, lines - len(steps))


def _lines(raw: bytes) -> Iterator[tuple[int, bytes]]:
    start, number = 0, 0
    while start < len(raw):  # not split(): a file of newlines would become a list many times its size
        end = raw.find(b"\n", start)
        end = len(raw) if end < 0 else end
        number += 1
        if line := raw[start:end].strip():
            yield number, line
        start = end + 1


def _load_step(line: bytes, where: str) -> LoggedStep:
    if len(line) > MAX_LINE_BYTES:
        raise HostileInputError(f"a line of {len(line)} bytes; the limit is {MAX_LINE_BYTES}", where=where)
    try:
        value = json.loads(line, object_pairs_hook=_no_duplicates)
    except (ValueError, RecursionError) as error:
        raise HostileInputError(f"not a line of JSON: {str(error) or 'nested too deep'}", where=where) from error
    if not isinstance(value, dict):
        raise HostileInputError("a line that is not an object", where=where)
    step = _integer(value, "step", where)
    if step is None:
        raise HostileInputError("a line without 'step'", where=where)
    time_s = _number(value, "step_time_s", where)
    if time_s is not None and (not math.isfinite(time_s) or time_s < 0):
        time_s = None
    return LoggedStep(
        step, _rewards(value, where), _number(value, "grad_norm", where), time_s, _integer(value, "task_counter", where)
    )


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key stands twice")
    return value


def _integer(value: dict[str, Any], name: str, where: str) -> int | None:
    found = value.get(name)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= MAX_INTEGER:
        raise HostileInputError(f"{name!r} is not an integer from 0 to {MAX_INTEGER}", where=where)
    return found


def _number(value: dict[str, Any], name: str, where: str) -> float | None:
    found = value.get(name)
    return None if found is None else _as_float(found, name, where)


def _rewards(value: dict[str, Any], where: str) -> tuple[float | None, ...] | None:
    found = value.get("rewards")
    if found is None:
        return None
    if not isinstance(found, list) or len(found) > MAX_REWARDS:
        raise HostileInputError(f"'rewards' is not a list of at most {MAX_REWARDS} numbers", where=where)
    rewards = [None if reward is None else _as_float(reward, "rewards", where) for reward in found]
    return tuple(reward if reward is not None and math.isfinite(reward) else None for reward in rewards)


def _as_float(found: Any, name: str, where: str) -> float:
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise HostileInputError(f"{name!r} holds something that is not a number", where=where)
    try:
        return float(found)
    except OverflowError:
        return math.inf
