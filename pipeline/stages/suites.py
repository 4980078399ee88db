"""From an image's definition and files to the scenarios that are played: the only place that knows both."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue

from pipeline.errors import ConfigError
from pipeline.files import read_bytes_limited
from pipeline.plan import Plan, PlannedImage
from pipeline.stages.curriculum import ExamineVendored, examine_curriculum
from pipeline.stages.fileset import MAX_FILE_BYTES
from pipeline.suites import repair, workflow
from pipeline.suites.repair_spec import RepairSpec
from pipeline.suites.scenario import Scenario
from pipeline.suites.workflow_spec import WorkflowSpec, load_cases, recorded_cases

SCHEMA_FILE = "policies/openenv-schema.json"


def make_scenarios(plan: Plan, image: PlannedImage, examine_vendored: ExamineVendored) -> tuple[Scenario, ...]:
    """The suite that image.yaml names, for this image. A vendored curriculum is run to learn its right answers."""
    schema: JsonValue = json.loads(_read(plan.release.root / SCHEMA_FILE))
    if image.source.definition.suite == "repair":
        return repair.scenarios(_repair_spec(image, schema))
    if image.source.definition.curriculum is not None:
        return workflow.scenarios(_vendored_spec(image, schema, examine_vendored))
    return workflow.scenarios(_workflow_spec(image, schema))


def _repair_spec(image: PlannedImage, schema: JsonValue) -> RepairSpec:
    task, folder = image.source.task, image.source.task_path
    if task is None:
        raise ConfigError(
            f"image {image.id!r} has no task record and reference repair, so its checks cannot be played",
            where=f"release file: images.{image.id}",
            remedy="keep its record and reference repair in a task folder, and name that as its 'task'",
        )
    assert folder is not None, "config refuses a task without a folder"
    record = _read(folder / task.record)
    return RepairSpec(
        task_id=task.id,
        cwd=str(json.loads(record)["cwd"]),
        record=record,
        base_commit=task.base_commit,
        guard=task.guard,
        reference_repair=_read(image.source.definition_path / task.reference_repair).decode(),
        schema=schema,
    )


def _workflow_spec(image: PlannedImage, schema: JsonValue) -> WorkflowSpec:
    folder = image.source.definition_path
    cases = load_cases(_read(folder / "cases.json").decode(), str(folder / "cases.json"))
    solvers = {path.stem: _read(path).decode() for path in sorted((folder / "fixtures" / "solvers").glob("*.py"))}
    return _within_budgets(WorkflowSpec(cases, solvers, schema), image)


def _vendored_spec(image: PlannedImage, schema: JsonValue, examine_vendored: ExamineVendored) -> WorkflowSpec:
    """The module's own answers stand in for solvers."""
    examined = examine_curriculum(image.source, examine_vendored)
    answers = {case.id: case.answer for case in examined}
    cases = recorded_cases(answers, {case.id: case.family for case in examined})
    return _within_budgets(WorkflowSpec(cases, {}, schema, answers), image)


def _within_budgets(spec: WorkflowSpec, image: PlannedImage) -> WorkflowSpec:
    budgets = image.source.released.budgets
    return replace(
        spec,
        max_actions=budgets.tool_calls_total,
        grading_s=budgets.verifier_wall_s,
        reset_s=budgets.reset_wall_s,
    )


def _read(path: Path) -> bytes:
    return read_bytes_limited(path, MAX_FILE_BYTES)
