"""The order of tasks is data of the release, checked before any work; images may exist only where they are pinned."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pipeline.config import load_release
from pipeline.errors import ConfigError
from pipeline.model.release import TaskGroup
from pipeline.plan import make_plan, render_plan
from pipeline.tasks import load_case_ids, place_tasks
from tests.fakes.documented import ROOT, plan_of

AVAILABLE = {"a": ("a1", "a2", "a3"), "b": ("b1",)}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A copy of the declarative files, to be damaged."""
    for name in ("images", "policies", "releases"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def edit(path: Path, old: str, new: str) -> int:
    text = path.read_text()
    assert text.count(old) >= 1, old
    path.write_text(text.replace(old, new, 1))
    return text[: text.index(old)].count("\n") + 1


def test_groups_give_the_order_and_the_split() -> None:
    groups = [
        TaskGroup(image="a", ids=("a3", "a1")),
        TaskGroup(image="b", split="validation"),
        TaskGroup(image="a", ids=("a2",), split="test"),
    ]
    placed = [(task.image, task.task_id, task.split) for task in place_tasks(groups, AVAILABLE)]
    assert placed == [("a", "a3", "train"), ("a", "a1", "train"), ("b", "b1", "validation"), ("a", "a2", "test")]


@pytest.mark.parametrize(
    ("groups", "where", "what"),
    [
        ([TaskGroup(image="c")], "tasks.0.image", "no image 'c'"),
        ([TaskGroup(image="b"), TaskGroup(image="a", ids=("a1", "b1"))], "tasks.1.ids.1", "has no task 'b1'"),
        ([TaskGroup(image="a", ids=("a1", "a1"))], "tasks.0.ids.1", "named twice"),
        ([TaskGroup(image="a", ids=("a2",)), TaskGroup(image="a")], "tasks.1.image", "'a2' is named twice"),
    ],
)
def test_groups_that_cannot_be_placed_say_where(groups: list[TaskGroup], where: str, what: str) -> None:
    with pytest.raises(ConfigError, match=what) as caught:
        place_tasks(groups, AVAILABLE)
    assert caught.value.where == where


@pytest.mark.parametrize("raw", [b"{}", b"[{}]", b'[{"id": 3}]', b'[{"id": "../up"}]', b"[", b"\xff"])
def test_cases_that_are_none_are_refused(raw: bytes) -> None:
    with pytest.raises(ConfigError, match="not a list of cases"):
        load_case_ids(raw, "cases.json")


def test_the_examples_plan_on_their_targets_and_say_how_many_tasks() -> None:
    for target in ("local", "ghcr"):
        assert "tasks: 34 (32 of software, 1 of format-code-task-000666, 1 of format-code-task-001926)" in render_plan(
            plan_of("thirty-four-tasks", target)
        )
    text = render_plan(plan_of("five-repairs"))
    assert "tasks: 5 (" in text
    assert "format-code-task-000932: fastavro JSON writer schema validation" in text
    assert text.count("none can be played: the suite of a repair needs its task record") == 5


def test_production_pins_everything_and_the_local_target_nothing() -> None:
    kinds = {image.id: image.base_kind for image in plan_of("thirty-four-tasks", "local").images}
    assert sorted(kinds.values()) == ["image", "recipe", "recipe"]
    for name in ("thirty-four-tasks", "five-repairs"):
        assert {image.base_kind for image in plan_of(name, "ghcr").images} == {"pinned"}


def test_a_target_without_a_source_for_an_image_is_refused(root: Path) -> None:
    path = root / "releases" / "five-repairs.yaml"
    digest = "09e8e1ee42db0c7b02a9c68b4902c9bbae583c204e9df0480168273d8bb8998c"
    edit(path, f"      format-code-task-000932: ghcr.io/akseljoonas/mimo-openenv-software@sha256:{digest}\n", "")
    with pytest.raises(ConfigError, match="no source for image 'format-code-task-000932'") as caught:
        make_plan(load_release(path), None)
    assert caught.value.where == "release file: targets.ghcr.pinned"


def test_a_repair_with_neither_task_nor_published_image_is_refused(root: Path) -> None:
    path = root / "releases" / "thirty-four-tasks.yaml"
    line = path.read_text().splitlines().index("  - id: format-code-task-000666") + 1
    edit(path, "    task: images/mimo/tasks/format-code-task-000666\n    published:\n", "    published:\n")
    text = path.read_text()
    start, end = text.index("    published:\n"), text.index("    budgets:\n")
    path.write_text(text[:start] + text[end:])
    with pytest.raises(ConfigError, match="it takes 'task' and no 'base'") as caught:
        load_release(path)
    assert caught.value.where.endswith(f":{line}")
    assert "'published'" in caught.value.remedy


def test_a_source_image_by_tag_is_refused(root: Path) -> None:
    path = root / "releases" / "five-repairs.yaml"
    digest = "@sha256:b23a0ff9eb97a0c35f128f161cb86fb49f40f78a5607fa3c7d380b3e475c1bf2"
    line = edit(path, digest, ":latest")
    with pytest.raises(ConfigError, match="a tag where a digest belongs") as caught:
        load_release(path)
    assert caught.value.where.endswith(f":{line}")


@pytest.mark.parametrize(
    ("old", "new", "what", "remedy"),
    [
        ("      - math_route-d1-s101\n", "      - math_rout-d1-s101\n", "has no task", "'math_route-d1-s101'"),
        ("      - math_route-d1-s101\n", "      - math_route-d1-s307\n", "is named twice", "keep one"),
        ("  - image: software\n", "  - image: sofware\n", "no image 'sofware'", "did you mean 'software'?"),
    ],
)
def test_a_wrong_order_names_the_line_and_the_nearest(root: Path, old: str, new: str, what: str, remedy: str) -> None:
    path = root / "releases" / "thirty-four-tasks.yaml"
    line = edit(path, old, new)
    with pytest.raises(ConfigError, match=what) as caught:
        load_release(path)
    assert remedy in caught.value.remedy
    shown = int(caught.value.where.rpartition(":")[2])
    assert shown in (line, line + 1), "of two that are alike, the second is named"
