"""The task as the arena uses it: preparing, grading, and a folder that starts anew each time."""

import json
import os
import sys
import types
from pathlib import Path

import pytest
from arena.failures import InfrastructureError
from workflow import curriculum
from workflow.environment import WorkflowTask, load_curriculum

AGENT = (52171, 52171) if os.getuid() == 0 else (os.getuid(), os.getgid())


@pytest.fixture
def repo(tmp_path):
    return tmp_path / "repo"


@pytest.fixture
def task(repo):
    return WorkflowTask(str(repo), *AGENT, curriculum)


def answer(repo, value):
    path = repo / "answer.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    os.chown(path, *AGENT)


def right(task_id):
    family, difficulty, seed = task_id.rsplit("-", 2)
    return curriculum.make_task(family, int(seed[1:]), int(difficulty[1:])).expected


def test_ids_are_the_32_cases(task):
    assert len(task.ids) == len(set(task.ids)) == 32
    assert task.ids[0] == "software_change-d1-s101"
    assert task.max_actions == 16


def test_prepare_writes_four_files_of_the_agent(task, repo):
    prompt = task.prepare("math_route-d1-s101")
    assert sorted(path.name for path in repo.iterdir()) == [
        "INSTRUCTIONS.md",
        "graph.json",
        "rules.json",
        "windows.json",
    ]
    assert (repo / "INSTRUCTIONS.md").read_text() == prompt
    for path in [repo, *repo.iterdir()]:
        assert (path.stat().st_uid, path.stat().st_gid) == AGENT
        assert path.stat().st_mode & 0o7777 == (0o755 if path == repo else 0o644)


@pytest.mark.parametrize("umask", [0, 0o077])
def test_modes_do_not_depend_on_the_umask(task, repo, umask):
    before = os.umask(umask)
    try:
        task.prepare(task.ids[0])
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in repo.iterdir()} == {0o644}


def test_grading(task, repo):
    task.prepare("finance_ledger-d2-s307")
    assert task.grade("finance_ledger-d2-s307").reward == 0.0
    answer(repo, right("finance_ledger-d2-s307"))
    assert task.grade("finance_ledger-d2-s307").reward == 1.0
    answer(repo, {**right("finance_ledger-d2-s307"), "turnover": 0})
    assert task.grade("finance_ledger-d2-s307").reward == 0.8
    answer(repo, "[]")
    assert task.grade("finance_ledger-d2-s307").reward == 0.0


def test_the_grade_says_nothing_of_the_right_answer(task, repo):
    task.prepare("finance_ledger-d2-s307")
    answer(repo, {**right("finance_ledger-d2-s307"), "turnover": 0})
    assert task.grade("finance_ledger-d2-s307").output == '{"reward": 0.8}'


def test_edited_inputs_change_nothing(task, repo):
    task.prepare(task.ids[0])
    for path in repo.iterdir():
        path.write_text("{}")
    answer(repo, right(task.ids[0]))
    assert task.grade(task.ids[0]).reward == 1.0


def test_renewing_replaces_whatever_is_there(task, repo):
    for plant in (
        lambda: (repo / "deep" / "er").mkdir(parents=True),
        lambda: repo.chmod(0o777),
        lambda: (repo / "link").symlink_to("/etc"),
        lambda: (repo / "answer.json").write_text(json.dumps(right(task.ids[1]))),
        lambda: os.setxattr(repo, "user.left", b"behind"),
    ):
        plant() if repo.exists() else repo.mkdir()
        task.prepare(task.ids[1])
        assert len(list(repo.iterdir())) == 4
        assert repo.stat().st_mode & 0o777 == 0o755
        assert not os.listxattr(repo)
        assert task.grade(task.ids[1]).reward == 0.0


def test_a_repository_of_the_image_below_is_removed_at_start(task, repo):
    (repo / ".git" / "objects").mkdir(parents=True)
    (repo / "pyromat").mkdir()
    task.renew()
    assert list(repo.iterdir()) == []


def test_a_link_in_place_of_the_folder_is_not_followed(task, repo, tmp_path):
    target = tmp_path / "target"
    target.mkdir()
    (target / "kept").touch()
    repo.symlink_to(target)
    task.prepare(task.ids[0])
    assert not repo.is_symlink()
    assert (target / "kept").exists()
    assert len(list(repo.iterdir())) == 4


def test_a_folder_that_was_swapped_for_a_link_is_graded_by_what_was_given(task, repo, tmp_path):
    task.prepare(task.ids[0])
    repo.rename(tmp_path / "moved")
    (tmp_path / "planted").mkdir()
    answer(tmp_path / "planted", right(task.ids[0]))
    repo.symlink_to(tmp_path / "planted")
    assert task.grade(task.ids[0]).reward == 0.0


def test_many_episodes_keep_no_descriptor(task):
    task.prepare(task.ids[0])
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(64):
        task.prepare(task.ids[number % 32])
        task.grade(task.ids[number % 32])
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), -0.1, 1.5])
def test_a_curriculum_that_gives_no_reward_is_an_error(repo, reward):
    module = types.SimpleNamespace(
        TASK_IDS=("one",),
        make_task=lambda task_id, seed, difficulty: types.SimpleNamespace(
            files={"a.json": b"{}"}, prompt="p", expected={}
        ),
        grade=lambda task, answer: reward,
    )
    task = WorkflowTask(str(repo), *AGENT, module)
    task.prepare("one-d1-s101")
    answer(repo, {})
    with pytest.raises(InfrastructureError):
        task.grade("one-d1-s101")


def test_ours_is_used_when_nothing_is_vendored():
    assert load_curriculum() is curriculum


def test_a_vendored_module_takes_the_place_of_ours(repo, monkeypatch):
    source = (Path(__file__).resolve().parents[3] / "tests" / "golden" / "vendored_curriculum.py").read_bytes()
    module = types.ModuleType("workflow.vendored")
    exec(source, module.__dict__)
    module.__spec__ = types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "workflow.vendored", module)
    task = WorkflowTask(str(repo), *AGENT, load_curriculum())
    assert task.ids[0] == "letter_counts-d1-s101"
    assert len(task.ids) == 8
    assert "words.json" in task.prepare(task.ids[0])
    assert sorted(path.name for path in repo.iterdir()) == [
        "INSTRUCTIONS.md",
        "limits.json",
        "numbers.json",
        "words.json",
    ]
    made = module.make_task("letter_counts", 101, 1)
    answer(repo, module.reference_answer(made))
    assert task.grade(task.ids[0]).reward == 1.0
    answer(repo, {**made["expected"], "total": -1})
    assert task.grade(task.ids[0]).reward == 0.8
    answer(repo, "[" * 5000)
    assert task.grade(task.ids[0]).reward == 0.0
