"""The repair suite as a value: what it declares, that its ids are stable, and that nothing passes without an image."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest

from pipeline.errors import PipelineError, ServiceError
from pipeline.suites import scriptfile
from pipeline.suites.repair import scenarios
from pipeline.suites.repair_spec import RepairSpec
from pipeline.suites.runner import check_ids
from pipeline.suites.scenario import Bench, play
from pipeline.suites.scriptfile import load_inspection, load_scripts

ROOT = Path(__file__).resolve().parents[2]
TASKS = sorted(path.name for path in (ROOT / "images/mimo/tasks").iterdir())


def spec_of(task: str, guard: Any = "none") -> RepairSpec:
    record = (ROOT / "images/mimo/tasks" / task / "record.json").read_bytes()
    reference = (ROOT / "images/mimo/fixtures" / task / "reference.patch").read_text()
    return RepairSpec(task, "/workspace/repo", record, "0" * 40, guard, reference, {})


class NoArena:
    """A server that nobody can reach."""

    url = "http://127.0.0.1:9"

    def exchange(self, frame: str | bytes, timeout_s: float = 0) -> Any:
        raise ServiceError("no reply")

    def exec(self, *arguments: Any, **options: Any) -> Any:
        raise ServiceError("no container")

    def memory_bytes(self) -> int:
        raise ServiceError("no container")

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("task", TASKS)
def test_declares_the_core_checks_and_a_red_team(task: str) -> None:
    ids = check_ids(scenarios(spec_of(task)))
    core = {
        "image.ready", "image.validator", "image.client", "image.task", "isolation.ids", "isolation.secrets",
        "image.no-future", "grading.untouched-reward", "grading.terminal-stable", "grading.edits-gone",
        "grading.hooks-unprivileged", "grading.reference-applied", "grading.reference-reward", "grading.reset-unsolved",
    }  # fmt: skip
    assert {f"repair.{name}" for name in core} <= set(ids)
    assert sum(check_id.startswith("repair.cheat.") for check_id in ids) >= 30
    assert all(re.fullmatch(r"repair\.[a-z]+\.[a-z0-9-]+", check_id) for check_id in ids)


def test_ids_do_not_depend_on_task_or_guard() -> None:
    suites = {check_ids(scenarios(spec_of(task, guard))) for task in TASKS for guard in ("none", "planted-hooks")}
    assert len(suites) == 1


def test_the_guard_changes_expected_rewards_of_cheats_alone() -> None:
    expected = [
        {s.id: s.expected for scenario in scenarios(spec_of(TASKS[0], guard)) for s in scenario.statements}
        for guard in ("none", "planted-hooks")
    ]
    changed = {check_id for check_id in expected[0] if expected[0][check_id] != expected[1][check_id]}
    assert {check_id.split(".")[1] for check_id in changed} == {"cheat"}
    assert {expected[1][check_id] for check_id in expected[1] if ".cheat." in check_id} == {0.0}
    assert Counter(expected[0][check_id] for check_id in changed).keys() == {1.0}


@pytest.mark.parametrize("scenario", scenarios(spec_of(TASKS[0])), ids=lambda scenario: scenario.name)
def test_nothing_passes_without_an_image(scenario: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    arena = cast(Any, NoArena())
    bench = Bench(arena, lambda: arena, cast(Any, None), cast(Any, None))
    results = play(scenario, bench)
    assert len(results) == len(scenario.statements)
    assert "pass" not in {result.outcome for result in results}


@pytest.mark.parametrize("task", TASKS)
def test_a_reference_repair_fits_into_an_action_and_names_no_test(task: str) -> None:
    spec = spec_of(task)
    assert len(spec.repair_command) <= 16_000
    assert spec.test_paths
    assert not set(spec.test_paths) & set(re.findall(r"^\+\+\+ b/(.*)$", spec.reference_repair, re.MULTILINE))
    assert json.loads(spec.record)["dataset_type"] == "opensource-code"
    assert len(spec.statement.encode()) <= 12_000


@pytest.mark.parametrize("kind", ["cheat", "hide", "trick"])
def test_actions_say_what_they_do_fit_and_parse(kind: str) -> None:
    scripts = load_scripts(kind)
    assert len(scripts) >= 15
    for script in scripts:
        action = script.action("tests/test_x.py")
        assert len(action) <= 16_000
        assert (script.reward is not None) == (kind == "cheat")
        parsed = subprocess.run(["bash", "-n"], input=action, text=True, capture_output=True, check=False)
        assert (parsed.returncode, parsed.stderr) == (0, ""), script.name


def test_inspections_are_programs() -> None:
    for path in (scriptfile.FOLDER / "inspect").glob("*.py"):
        compile(load_inspection(path.stem), str(path), "exec")


def test_an_action_without_its_first_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scriptfile, "FOLDER", tmp_path)
    (tmp_path / "trick").mkdir()
    (tmp_path / "trick" / "x.sh").write_text("rm -rf .\n")
    with pytest.raises(PipelineError, match="does not begin with a comment"):
        load_scripts("trick")
