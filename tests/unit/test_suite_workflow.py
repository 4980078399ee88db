"""The workflow suite against a sound arena and against broken ones: exactly the right checks fail."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.model.finding import CheckResult
from pipeline.suites.scenario import play
from pipeline.suites.workflow import scenarios
from pipeline.suites.workflow_spec import WorkflowCase, WorkflowSpec, load_cases

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "fakes"))

from workflow_arena import grading, workflow_bench  # noqa: E402

SOFTWARE = ROOT / "images" / "software"
CASES = load_cases((SOFTWARE / "cases.json").read_text(), "cases.json")
SOLVERS = {path.stem: path.read_text() for path in (SOFTWARE / "fixtures" / "solvers").glob("*.py")}


def make_spec(cases: tuple[WorkflowCase, ...], schema: Any = None) -> WorkflowSpec:
    return WorkflowSpec(cases, SOLVERS, schema)


def published_schema() -> Any:
    with workflow_bench() as bench:
        routes = json.loads(bench.container.exec(["fetch"]).output)
    return {key: routes["/schema"][1][key] for key in ("action", "observation")}


def run(spec: WorkflowSpec, *names: str, faults: tuple[str, ...] = (), **options: Any) -> dict[str, CheckResult]:
    """Results by id of the scenarios with these names, on a fresh fake."""
    with workflow_bench(*faults, **options) as bench:
        chosen = [scenario for scenario in scenarios(spec) if scenario.name in names]
        assert len(chosen) == len(names)
        return {result.id: result for scenario in chosen for result in play(scenario, bench)}


def failing(results: dict[str, CheckResult], prefix: str = "") -> set[str]:
    return {check.removeprefix(prefix) for check, result in results.items() if result.outcome != "pass"}


def test_the_release_has_enough_checks_with_stable_distinct_ids() -> None:
    statements = [statement for scenario in scenarios(make_spec(CASES)) for statement in scenario.statements]
    ids = [statement.id for statement in statements]
    assert len(ids) == len(set(ids)) >= 640
    assert all(check.startswith("workflow.") for check in ids)
    per_case = {case.id: sum(check.startswith(f"workflow.{case.id}.") for check in ids) for case in CASES}
    assert min(per_case.values()) >= 18
    assert sum(check.startswith("workflow.cheat.") for check in ids) >= 15
    assert all(10 < len(statement.text) <= 120 for statement in statements)


@pytest.mark.parametrize("case", CASES[2::4], ids=lambda case: case.family)
def test_a_sound_arena_passes_a_case_of_every_family(case: WorkflowCase) -> None:
    assert failing(run(make_spec(CASES), f"workflow.{case.id}")) == set()


def test_a_sound_arena_passes_wire_probes_and_red_team() -> None:
    spec = make_spec(CASES, published_schema())
    assert failing(run(spec, "workflow.protocol", "workflow.image.probes", "workflow.cheat")) == set()


CASE = CASES[0]
PREFIX = f"workflow.{CASE.id}."


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        (("fifo-blocks",), {"fifo"}),
        (("follows-links",), {"symlink"}),
        (("seeded",), {"seeds"}),
        (("stale",), {"isolation"}),
        (("forgetful",), {"isolation"}),
        (("extra-file",), {"workspace"}),
    ],
)
def test_a_broken_environment_fails_the_right_checks(faults: tuple[str, ...], expected: set[str]) -> None:
    assert failing(run(make_spec(CASES), f"workflow.{CASE.id}", faults=faults), PREFIX) == expected


def loose_booleans(right: dict[str, Any], given: dict[str, Any]) -> float:
    same = {key for key in right if key in given and right[key] == given[key]}
    return grading.grade_components(right, {**given, **{key: right[key] for key in same}})


def uncapped(right: dict[str, Any], given: dict[str, Any]) -> float:
    score = grading.grade_components(right, given)
    share = sum(key in given and grading.same(right[key], given[key]) for key in right) / len(right)
    return share if score == 0.8 else score


def no_substance_rule(right: dict[str, Any], given: dict[str, Any]) -> float:
    if given.keys() - right.keys():
        return 0.0
    share = sum(key in given and grading.same(right[key], given[key]) for key in right) / len(right)
    return share if share == 1 else min(0.8, share)


def known_keys_only(right: dict[str, Any], given: dict[str, Any]) -> float:
    return grading.grade_components(right, {key: value for key, value in given.items() if key in right})


def strict_numbers(right: dict[str, Any], given: dict[str, Any]) -> float:
    plain = {key: value if json.dumps(right.get(key)) == json.dumps(value) else "?" for key, value in given.items()}
    return grading.grade_components(right, plain)


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (loose_booleans, {"boolean-swap"}),
        (uncapped, {"one-wrong", "one-missing", "deepest", "boolean-swap"}),
        (no_substance_rule, {"hollow-right"}),
        (known_keys_only, {"unknown-key"}),
        (strict_numbers, {"float-numbers"}),
        (lambda right, given: 1.0 if given else 0.0, None),
        (lambda right, given: 0.0, None),
    ],
)
def test_a_broken_grader_fails_the_right_checks(score: Callable[..., float], expected: set[str] | None) -> None:
    failed = failing(run(make_spec(CASES), f"workflow.{CASE.id}", score=score), PREFIX)
    if expected is not None:
        assert failed == expected
    else:
        assert len(failed) >= 4


def test_a_grader_without_limits_fails_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    import workflow.environment as environment

    monkeypatch.setattr(environment, "load_answer", lambda raw: json.loads(raw.decode("utf-8", "replace") or "{}"))
    failed = failing(run(make_spec(CASES), f"workflow.{CASE.id}"), PREFIX)
    assert failed == {"nan", "duplicate-keys", "too-deep", "too-many-nodes", "not-utf8", "malformed", "list"}


def test_an_agent_that_sees_too_much_fails_its_probes() -> None:
    outputs = {"server_environment": "412\n", "arena_unreadable": "3\n20000\n", "identity": "0\n0\n0\n"}
    failed = failing(run(make_spec(CASES), "workflow.image.probes", **outputs), "workflow.image.")
    assert failed == {"server-environment", "arena-unreadable", "identity"}


def test_another_schema_fails_the_schema_check_alone() -> None:
    schema = {**published_schema(), "action": {"type": "object"}}
    assert failing(run(make_spec(CASES, schema), "workflow.protocol")) == {"workflow.protocol.schema"}


def test_a_grader_that_likes_a_wrapper_fails_the_red_team() -> None:
    def unwraps(right: dict[str, Any], given: dict[str, Any]) -> float:
        return grading.grade_components(right, given.get("answer", given))

    assert failing(run(make_spec(CASES), "workflow.cheat", score=unwraps)) == {"workflow.cheat.wrapped"}


def test_a_solver_that_fails_leaves_errors_never_passes() -> None:
    spec = WorkflowSpec(CASES, {**SOLVERS, CASE.family: "raise SystemExit(3)"}, None)
    results = run(spec, f"workflow.{CASE.id}")
    outcomes = {check.removeprefix(PREFIX): result.outcome for check, result in results.items()}
    assert {name for name, outcome in outcomes.items() if outcome == "pass"} == {"reset", "workspace", "instructions"}


def test_a_recorded_answer_stands_in_for_a_solver() -> None:
    family, difficulty, seed = CASE.id.rsplit("-", 2)
    from workflow import curriculum

    right = curriculum.make_task(family, int(seed[1:]), int(difficulty[1:])).expected
    spec = WorkflowSpec(CASES, {}, None, answers={CASE.id: json.dumps(right)})
    assert failing(run(spec, f"workflow.{CASE.id}")) == set()
