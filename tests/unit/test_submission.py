"""The request of a release: complete, explicit, in the stated order, and refused where evidence says too little."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.errors import StageError
from pipeline.report.submission import make_submission
from tests.fakes.documented import EVIDENCE, REVISION, ROOT, SCHEMA, change, facts_of, submission_of

GOLDEN = Path(__file__).parents[1] / "golden" / "documents"
BUDGETS = [
    "completion_tokens", "context_tokens", "cpu_floor_vcpus", "memory_gib", "reset_wall_s", "rollout_wall_s",
    "tool_calls_per_minute", "tool_calls_total", "tool_wall_s", "verifier_wall_s", "workspace_gib",
]  # fmt: skip


def case_ids() -> list[str]:
    return [case["id"] for case in json.loads((ROOT / "images" / "software" / "cases.json").read_text())]


@pytest.mark.parametrize("target", ["local", "ghcr"])
def test_the_repairs_stand_after_the_first_and_the_third_block_of_eight(target: str) -> None:
    ids = [task.task_id for task in submission_of("thirty-four-tasks", target).tasks]

    assert len(ids) == 34
    assert [ids.index("format-code-task-000666"), ids.index("format-code-task-001926")] == [8, 25]
    assert [one for one in ids if not one.startswith("format-code")] == case_ids()


def test_five_repairs_are_five_images_by_their_published_digest_and_place() -> None:
    tasks = submission_of("five-repairs").tasks

    assert [task.task_id[-6:] for task in tasks] == ["000666", "001926", "001886", "001457", "000932"]
    assert len({task.image for task in tasks}) == 5
    assert all(task.image.startswith("ghcr.io/akseljoonas/mimo-openenv-software@sha256:") for task in tasks)


def test_every_budget_of_every_task_is_stated_and_the_image_is_a_digest() -> None:
    request = json.loads(submission_of("thirty-four-tasks", "local").to_bytes())

    for task in request["tasks"]:
        assert sorted(task) == sorted([*BUDGETS, "image", "split", "task_id"])
        assert "@sha256:" in task["image"]
        assert ":2026-10-12" not in task["image"], "a tag is no identity"
    workflow, repair = request["tasks"][0], request["tasks"][8]
    assert (workflow["rollout_wall_s"], workflow["tool_calls_total"], workflow["context_tokens"]) == (300, 16, 16384)
    assert (repair["rollout_wall_s"], repair["tool_calls_total"], repair["context_tokens"]) == (1200, 64, 32768)


def test_the_request_has_the_live_schema_and_names_the_evidence() -> None:
    request = json.loads(submission_of("five-repairs").to_bytes())

    assert request["schema"] == SCHEMA
    assert request["source"] == {
        "evidence": EVIDENCE,
        "repository": "https://github.com/akseljoonas/mimo-openenv-software",
        "revision": REVISION,
    }
    assert request["submission_id"] == f"2026-10-13-ghcr-{EVIDENCE[7:19]}"
    assert request["dataset"]["name"] == "XiaomiMiMo/MiMo-V2.6-RL-oss"
    assert request["server_port"] == 8000
    assert request["finish_action"] == {"operation": "finish"} == request["example_actions"][-1]
    assert request["image"] == request["tasks"][0]["image"]


def test_a_dataset_that_is_not_named_is_the_repository_at_the_attested_revision() -> None:
    request = json.loads(submission_of("thirty-four-tasks", "local").to_bytes())

    assert request["dataset"]["name"] == "https://github.com/akseljoonas/mimo-openenv-software"
    assert request["dataset"]["revision"] == REVISION


def test_without_an_order_all_tasks_stand_image_by_image() -> None:
    facts = facts_of("thirty-four-tasks", "local", tasks=(), name=None)
    found = make_submission(facts, EVIDENCE)

    repairs = ["format-code-task-000666", "format-code-task-001926"]
    assert [task.task_id for task in found.tasks] == [*repairs, *case_ids()]
    assert found.name == "mimo-openenv-software 2026-10-12"


def test_the_request_is_the_golden_one_byte_for_byte() -> None:
    assert submission_of("five-repairs").to_bytes() == (GOLDEN / "submission.json").read_bytes()


def test_evidence_without_budgets_is_refused() -> None:
    facts = change(facts_of("five-repairs"), "format-code-task-001886", budgets=None)
    with pytest.raises(StageError, match="no budgets for format-code-task-001886"):
        make_submission(facts, EVIDENCE)


def test_evidence_without_tasks_is_refused() -> None:
    facts = facts_of("five-repairs", tasks=())
    for image in facts.images:
        facts = change(facts, image.id, task_ids=())
    with pytest.raises(StageError, match="names no task"):
        make_submission(facts, EVIDENCE)


@pytest.mark.parametrize("schema", [{}, {"action": {}, "observation": SCHEMA["observation"]}])
def test_an_image_that_serves_another_schema_is_named(schema: object) -> None:
    facts = change(facts_of("five-repairs"), "format-code-task-001457", schema=schema)
    with pytest.raises(StageError, match="one request names one schema") as caught:
        make_submission(facts, EVIDENCE)
    assert caught.value.where == "images/format-code-task-001457/schema.json"


def test_images_on_two_ports_are_refused() -> None:
    facts = facts_of("five-repairs")
    definition = facts.images[0].asked.definition
    other = definition.model_copy(update={"runtime": definition.runtime.model_copy(update={"port": 9000})})
    with pytest.raises(StageError, match=r"listen on \[8000, 9000\]"):
        make_submission(change(facts, "format-code-task-000932", definition=other), EVIDENCE)
