"""What the workflow suite needs to know beforehand: the cases, how each is solved, and the published schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from pipeline.errors import ConfigError
from pipeline.suites.workflow_rule import has_substance


@checked_dataclass(frozen=True)
class WorkflowCase:
    """One case. `components` counts the answer's top-level keys; `hollow`: one of them is right without substance."""

    id: str
    family: str
    components: int
    hollow: bool


@dataclass(frozen=True)
class WorkflowSpec:
    """`solvers` are program texts by family; `answers` are JSON texts by case id and stand in for a solver.

    `schema` is the content of policies/openenv-schema.json: `action` and `observation` as consumers were given them.
    """

    cases: tuple[WorkflowCase, ...]
    solvers: Mapping[str, str]
    schema: JsonValue
    answers: Mapping[str, str] = field(default_factory=dict)
    max_actions: int = 16
    grading_s: float = 30
    reset_s: float = 120


def load_cases(text: str, where: str) -> tuple[WorkflowCase, ...]:
    """Parse images/software/cases.json; ConfigError when it is not a list of cases with distinct ids."""
    try:
        cases = TypeAdapter(tuple[WorkflowCase, ...]).validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"not a list of workflow cases: {first['loc']}: {first['msg']}", where=where) from error
    if not cases or len({case.id for case in cases}) < len(cases):
        raise ConfigError("workflow cases must be at least one, with distinct ids", where=where)
    return cases


def load_answer(text: str) -> dict[str, JsonValue]:
    """A solver's answer: a JSON object. ValueError for anything else."""
    value = json.loads(text)
    if not isinstance(value, dict) or not value:
        raise ValueError("the solver's answer is not a JSON object")
    return value


def recorded_cases(answers: Mapping[str, str], families: Mapping[str, str]) -> tuple[WorkflowCase, ...]:
    """Cases of a curriculum without solvers, from its right answers (JSON objects) and families by case id."""
    cases = []
    for case_id, text in answers.items():
        right = load_answer(text)
        hollow = not all(has_substance(value) for value in right.values())
        cases.append(WorkflowCase(case_id, families[case_id], len(right), hollow))
    return tuple(cases)
