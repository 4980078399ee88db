"""The second implementation of the rule agrees with the image's own, and the tools around it do what they say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import ConfigError
from pipeline.suites.scenario import same_json
from pipeline.suites.workflow_rule import expected_score, partial_score, spoil, swap_boolean, with_floats
from pipeline.suites.workflow_spec import load_answer, load_cases

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "images" / "software"))

from workflow.grading import grade_components

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, 2.5, "", "a"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner)
)
ANSWERS = st.dictionaries(st.sampled_from("abcdef"), VALUES, min_size=1)


@settings(max_examples=400, deadline=None)
@given(ANSWERS, ANSWERS, st.data())
def test_both_implementations_agree(right: Any, noise: Any, data: st.DataObject) -> None:
    kept = data.draw(st.sets(st.sampled_from(sorted(right))))
    answer = {**{key: value for key, value in noise.items() if key in right}, **{key: right[key] for key in kept}}
    for candidate in (answer, noise, right):
        assert expected_score(right, candidate) == grade_components(right, candidate)


@given(VALUES)
def test_a_spoilt_value_is_never_equal(value: Any) -> None:
    assert not same_json(value, spoil(value))


@given(VALUES)
def test_floats_stay_equal_and_swapped_booleans_do_not(value: Any) -> None:
    assert same_json(value, with_floats(value))
    swapped = swap_boolean(value)
    assert swapped == value or not same_json(swapped, value)


@pytest.mark.parametrize(
    ("components", "wrong", "score"), [(6, 1, 0.8), (6, 2, 4 / 6), (5, 1, 0.8), (4, 1, 0.75), (7, 6, 1 / 7)]
)
def test_partial_scores(components: int, wrong: int, score: float) -> None:
    assert partial_score(components, wrong) == score


@pytest.mark.parametrize(
    "text", ["[]", "{}", "[1]", '[{"id": "a"}]', '[{"id": 1, "family": "f", "components": 4, "hollow": true}]']
)
def test_malformed_case_lists_are_refused_with_their_place(text: str) -> None:
    with pytest.raises(ConfigError) as failure:
        load_cases(text, "cases.json")
    assert failure.value.where == "cases.json"


def test_case_ids_are_distinct() -> None:
    row = '{"id": "a", "family": "f", "components": 4, "hollow": true}'
    assert load_cases(f"[{row}]", "x")[0].components == 4
    with pytest.raises(ConfigError):
        load_cases(f"[{row}, {row}]", "x")


@pytest.mark.parametrize("text", ["[]", "{}", "1", "", "{"])
def test_an_answer_is_a_json_object(text: str) -> None:
    with pytest.raises(ValueError):
        load_answer(text)
