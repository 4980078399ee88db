"""Reading exported training logs: unknown fields are ignored, everything hostile is refused with its line."""

from __future__ import annotations

import json
import math

import pytest

from pipeline.errors import HostileInputError
from pipeline.report import training_log
from pipeline.report.training_log import LoggedStep, load_log


def line(**fields: object) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def test_a_line_has_what_it_says_and_none_for_what_it_does_not() -> None:
    raw = line(step=3, rewards=[1, 0.5, None], grad_norm=0.25, step_time_s=12, task_counter=7, loss={"kl": [1]})
    raw += b"\n  \n" + line(step=4, grad_norm=None)
    log = load_log(raw, "log")
    assert log.steps == (
        LoggedStep(3, (1.0, 0.5, None), 0.25, 12.0, 7),
        LoggedStep(4, None, None, None, None),
    )
    assert (log.lines, log.superseded_lines) == (2, 0)


def test_a_step_that_was_logged_again_counts_as_it_was_logged_last() -> None:
    log = load_log(line(step=2, grad_norm=1.0) + line(step=1) + line(step=2, grad_norm=3.0), "log")
    assert [(step.step, step.grad_norm) for step in log.steps] == [(1, None), (2, 3.0)]
    assert (log.lines, log.superseded_lines) == (3, 1)


def test_what_is_not_finite_is_unavailable_and_a_wild_gradient_is_kept() -> None:
    raw = b'{"step": 1, "rewards": [NaN, 1, 1e999], "grad_norm": NaN, "step_time_s": Infinity}\n'
    raw += b'{"step": 2, "grad_norm": 1e999, "step_time_s": -1}\n'
    raw += b'{"step": 3, "grad_norm": 1' + b"0" * 400 + b"}"
    first, second, third = load_log(raw, "log").steps
    assert first.rewards == (None, 1.0, None)
    assert first.grad_norm is not None
    assert math.isnan(first.grad_norm)
    assert first.step_time_s is None
    assert (second.grad_norm, second.step_time_s) == (math.inf, None)
    assert third.grad_norm == math.inf


def test_an_empty_log_has_no_steps() -> None:
    assert load_log(b"\n\n", "log").steps == ()


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (b"{", "not a line of JSON"),
        (b"[1]", "not an object"),
        (b'"text"', "not an object"),
        (b"{}", "without 'step'"),
        (b'{"step": null}', "without 'step'"),
        (b'{"step": -1}', "'step' is not an integer"),
        (b'{"step": 1.0}', "'step' is not an integer"),
        (b'{"step": true}', "'step' is not an integer"),
        (b'{"step": "1"}', "'step' is not an integer"),
        (b'{"step": 1000000000001}', "'step' is not an integer"),
        (b'{"step": ' + b"9" * 5000 + b"}", "JSON"),
        (b'{"step": 1, "step": 2}', "a key stands twice"),
        (b'{"step": 1, "task_counter": 1.5}', "'task_counter' is not an integer"),
        (b'{"step": 1, "rewards": {"0": 1}}', "'rewards' is not a list"),
        (b'{"step": 1, "rewards": ["1"]}', "'rewards' holds something that is not a number"),
        (b'{"step": 1, "rewards": [true]}', "'rewards' holds something that is not a number"),
        (b'{"step": 1, "grad_norm": "big"}', "'grad_norm' holds something that is not a number"),
        (b'{"step": 1, "rewards": [' + b"0," * 4096 + b"0]}", "at most 4096"),
        (b'{"step": 1, "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "JSON"),
        (b'{"step": 1, "x": "' + b"a" * (1 << 20) + b'"}', "the limit is 1048576"),
        (b"\xff\xfe{}", "not a line of JSON"),
    ],
)
def test_a_line_that_is_not_of_the_format_is_refused_and_named(bad: bytes, words: str) -> None:
    with pytest.raises(HostileInputError, match=words) as caught:
        load_log(line(step=0) + bad, "train.jsonl")
    assert caught.value.where == "train.jsonl:2"


def test_a_log_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_log, "MAX_LINES", 3)
    assert load_log(line(step=1) * 3, "log").lines == 3
    with pytest.raises(HostileInputError, match="more than 3 lines"):
        load_log(line(step=1) * 4, "log")
    monkeypatch.setattr(training_log, "MAX_EPISODES", 4)
    assert len(load_log(line(step=1, rewards=[0, 1]) + line(step=2, rewards=[0, 1]), "log").steps) == 2
    with pytest.raises(HostileInputError, match="more than 4 rewards"):
        load_log(line(step=1, rewards=[0, 1]) + line(step=2, rewards=[0, 1, 1]), "log")
    monkeypatch.setattr(training_log, "MAX_LOG_BYTES", 20)
    with pytest.raises(HostileInputError, match="larger than the limit"):
        load_log(b"\n" * 21, "log")
