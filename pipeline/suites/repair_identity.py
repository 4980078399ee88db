"""The image and its task: ready, valid for the framework, the right task, no future history, nothing readable."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from pydantic import JsonValue

from pipeline.suites.repair_spec import Facts, RepairSpec, inspect, make_scenario
from pipeline.suites.scenario import Bench, Observation, Scenario
from pipeline.suites.workflow_player import Player, play_framework

READY_S = 120

# Every object of the store against those that the base commit reaches: refs alone would miss what nothing points to.
_HISTORY = """
set -e
git cat-file --batch-all-objects --batch-check='%(objectname)' | sort -u > /tmp/all
git rev-list --objects --no-object-names HEAD | sort -u > /tmp/allowed
comm -23 /tmp/all /tmp/allowed | wc -l
comm -13 /tmp/all /tmp/allowed | wc -l
later() { while read -r id; do git merge-base --is-ancestor "$id" HEAD || echo "$id"; done; }
git for-each-ref --format='%(objectname)' | later | wc -l
cd .git
ls logs ORIG_HEAD FETCH_HEAD MERGE_HEAD objects/info/alternates worktrees modules 2>/dev/null | wc -l
cd ..
git stash list | wc -l
"""


def identity_scenario(spec: RepairSpec) -> Scenario:
    """The image as such."""
    facts: Facts = (
        ("ready", f"the server answers within {READY_S} s of the container's start", True),
        ("health", "/health says that the server is healthy", {"status": "healthy"}),
        ("schema", "action and observation schemas are the published ones", spec.schema),
        ("validator", "the framework's endpoint validation passes", {"exit_code": 0, "passed": True}),
        ("client", "the framework's own Python client plays an episode",
         {"reset": 0.0, "output": "here\n", "done": True}),
        ("record", "the image holds the task record byte for byte", hashlib.sha256(spec.record).hexdigest()),
        ("task", "a reset without a task id begins the image's only task", [spec.task_id, 0.0, False]),
        ("instructions", "the instructions are the record's problem statement", True),
        ("named-task", "a reset that names the task begins it", spec.task_id),
        ("base-commit", "HEAD is the base commit, and the index and files are clean", f"{spec.base_commit}\n0\n"),
        ("no-future", "the object store holds exactly what the base commit reaches: no other object, none missing, no "
         "later ref, no log, no stash", "0\n0\n0\n0\n0\n"),
    )  # fmt: skip
    return make_scenario(spec, "image", facts, _observe)


def _observe(spec: RepairSpec, bench: Bench, player: Player) -> Iterator[Observation]:
    yield "ready", bench.ready_s is not None and bench.ready_s <= READY_S
    facts = inspect(bench, "fetch")
    assert isinstance(facts, dict)
    yield from facts.items()
    yield "validator", _validated(bench.validate(bench.container.url))
    yield "client", play_framework(bench)
    begun = player.reset()
    yield "task", [begun.observation.get("task_id"), begun.data.get("reward"), begun.data.get("done")]
    yield "instructions", begun.output == spec.statement
    yield "named-task", player.reset(spec.task_id).observation.get("task_id")
    yield "base-commit", player.shell("git rev-parse HEAD; git status --porcelain --ignored | wc -l").output
    yield "no-future", player.shell(_HISTORY).output


def _validated(report: JsonValue) -> JsonValue:
    assert isinstance(report, dict)
    inner = report.get("report")
    return {"exit_code": report.get("exit_code"), "passed": inner.get("passed") if isinstance(inner, dict) else inner}
