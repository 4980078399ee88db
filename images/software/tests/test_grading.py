"""The exact grader and its limits, against every kind of answer that an agent may leave."""

import json
import time

import pytest
from workflow.grading import MAX_BYTES, MAX_DEPTH, MAX_NODES, UnacceptableError, grade_components, load_answer

RIGHT = {"names": ["a", "b"], "cost": 2, "flag": True, "none": None, "zero": 0, "empty": []}


def score(**changes):
    return grade_components(RIGHT, {**RIGHT, **changes})


def test_full_credit_needs_every_component():
    assert score() == 1.0
    assert grade_components(RIGHT, dict(reversed(RIGHT.items()))) == 1.0


def test_partial_credit_is_the_share_and_capped():
    assert score(cost=3) == 0.8  # 5 of 6 would be more
    assert score(cost=3, flag=False, zero=1) == 3 / 6
    without = {key: value for key, value in RIGHT.items() if key != "names"}
    assert grade_components(RIGHT, without) == 0.8


def test_components_without_substance_earn_nothing_alone():
    assert score(names=[], cost=0) == 0.0
    assert score(cost=0) == 0.8
    assert grade_components(RIGHT, {}) == 0.0


@pytest.mark.parametrize("value", [{"a": [{"b": ""}]}, [0, 0.0, -0.0], [[], {}], {"key with text": False}, None, True])
def test_substance_is_a_string_or_number_somewhere_within(value):
    assert grade_components({"x": value, "y": 1}, {"x": value}) == 0.0
    assert grade_components({"x": [value, {"k": [1]}], "y": 1}, {"x": [value, {"k": [1]}]}) == 0.5


def test_an_unknown_key_scores_nothing():
    assert score(extra=None) == 0.0


def test_booleans_are_not_numbers_but_floats_are():
    assert score(flag=1) == 0.8
    assert score(zero=False) == 0.8
    assert score(cost=2.0, zero=-0.0) == 1.0
    assert score(cost="2") == 0.8
    assert grade_components({"deep": [{"a": [True]}], "n": 1}, {"deep": [{"a": [1]}], "n": 1}) == 0.5
    assert grade_components({"deep": [{"a": [1]}], "n": 1}, {"deep": [{"a": [True]}], "n": True}) == 0.0


def test_lists_count_in_order_and_length():
    assert score(names=["b", "a"]) == 0.8
    assert score(names=["a", "b", "b"]) == 0.8


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b" " * (MAX_BYTES + 1),
        b"\xef\xbb\xbf{}",
        b'{"a": "\xff"}',
        b"{",
        b"{} {}",
        b"[]",
        b"null",
        b'"text"',
        b"NaN",
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b'{"a": 1e400}',
        b'{"a": -1e99999999999999999999}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a": 0.' + b"9" * 5000 + b"}",
        b'{"a": 1, "a": 1}',
        b'{"a": {"b": 1, "b": 1}}',
        b'{"a": 1, "\\u0061": 2}',
        b'{"a": ' * 30 + b"1" + b"}" * 30,
        b"[" * MAX_BYTES,
        b'{"a":' * 3000,
        b'{"a": [' + b"0," * MAX_NODES + b"0]}",
        b"\xff\xfe{\x00}\x00",
        b'{"a": 01}',
        b"{'a': 1}",
        b'{"a": 1,}',
        b'{"a": "\n"}',
    ],
)
def test_unacceptable_bytes_are_refused_quickly(raw):
    begun = time.perf_counter()
    with pytest.raises(UnacceptableError):
        load_answer(raw)
    assert time.perf_counter() - begun < 0.5


@pytest.mark.parametrize(
    "filling", [b'"' + b'\\"' * 8000, b'"' * 16000, b'"[' * 8000, b"\\" * 16000, b"]" * 8000 + b"[" * 8000]
)
def test_text_made_to_confuse_the_depth_count_is_refused_in_linear_time(filling):
    begun = time.perf_counter()
    with pytest.raises(UnacceptableError):
        load_answer(filling[:MAX_BYTES])
    assert time.perf_counter() - begun < 0.5


def test_limits_are_exact():
    nest = lambda depth: b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"  # noqa: E731
    assert load_answer(nest(MAX_DEPTH))
    with pytest.raises(UnacceptableError, match="depth"):
        load_answer(nest(MAX_DEPTH + 1))
    nodes = lambda count: json.dumps({"a": [0] * (count - 2)}).encode()  # noqa: E731
    assert load_answer(nodes(MAX_NODES))
    with pytest.raises(UnacceptableError, match="nodes"):
        load_answer(nodes(MAX_NODES + 1))
    assert load_answer(b"{}" + b" " * (MAX_BYTES - 2)) == {}
    with pytest.raises(UnacceptableError, match="size"):
        load_answer(b"{}" + b" " * (MAX_BYTES - 1))


def test_brackets_in_strings_are_text():
    assert load_answer(json.dumps({"a": "[" * 500 + '\\"' + "{" * 500}).encode())
    assert load_answer(b'{"a": "\\\\", "b": [["\\"[[[[[[[[[[[[[[[[[[[[[["]]}')


def test_ordinary_numbers_and_escapes_pass():
    assert (
        load_answer(b'{"a": -12, "b": 1.5e3, "c": "\\ud800", "d": 12345678901234567890}')["d"] == 12345678901234567890
    )
