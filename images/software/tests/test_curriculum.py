"""The 32 cases: shape, determinism, that difficulty counts, and that the independent solvers agree everywhere."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from workflow.curriculum import TASK_IDS, grade, make_task
from workflow.environment import DIFFICULTIES, SEEDS
from workflow.grading import substantive

SOFTWARE = Path(__file__).resolve().parents[1]
CASES = [(family, seed, difficulty) for family in TASK_IDS for difficulty in DIFFICULTIES for seed in SEEDS]


def solve(family, files, folder):
    """Run the reference solver as a program in a folder that holds the three files."""
    for name, text in files.items():
        (folder / name).write_text(text)
    program = SOFTWARE / "fixtures" / "solvers" / f"{family}.py"
    subprocess.run([sys.executable, "-I", str(program)], cwd=folder, check=True, timeout=60)
    return json.loads((folder / "answer.json").read_text())


def every_text(task):
    return json.dumps([task.files, task.prompt, task.expected])


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-d{case[2]}-s{case[1]}")
def test_the_solver_reaches_full_credit(case, tmp_path):
    task = make_task(*case)
    assert grade(task, solve(case[0], task.files, tmp_path)) == 1.0


@pytest.mark.parametrize("family", TASK_IDS)
def test_solver_and_generator_agree_on_other_seeds(family, tmp_path):
    source = (SOFTWARE / "fixtures" / "solvers" / f"{family}.py").read_text()
    program, home = compile(source, family, "exec"), Path.cwd()
    os.chdir(tmp_path)
    try:
        for seed in range(12):
            for difficulty in DIFFICULTIES:
                task = make_task(family, seed, difficulty)
                for name, text in task.files.items():
                    Path(name).write_text(text)
                exec(program, {})
                assert grade(task, json.loads(Path("answer.json").read_text())) == 1.0, (family, seed, difficulty)
    finally:
        os.chdir(home)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-d{case[2]}-s{case[1]}")
def test_shape(case):
    task = make_task(*case)
    assert len(task.files) == 3
    assert all(name.endswith(".json") and name in task.prompt and json.loads(text) for name, text in task.files.items())
    assert len(task.expected) >= 4
    assert all(f"- {key}: " in task.prompt for key in task.expected)
    assert sum(len(text) for text in task.files.values()) < 8_000
    assert len(json.dumps(task.expected)) < 4_000
    assert len(task.prompt.encode()) < 4_000


@pytest.mark.parametrize("family", TASK_IDS)
def test_no_component_is_the_same_in_all_four_cases(family):
    tasks = [make_task(family, seed, difficulty) for difficulty in DIFFICULTIES for seed in SEEDS]
    for key in tasks[0].expected:
        assert len({json.dumps(task.expected[key]) for task in tasks}) > 1, key
        hollow = [task for task in tasks if not substantive(task.expected[key])]
        assert not hollow or all(isinstance(task.expected[key], bool) for task in hollow), key


@pytest.mark.parametrize("family", TASK_IDS)
def test_difficulty_two_is_larger(family):
    size = {d: min(len("".join(make_task(family, seed, d).files.values())) for seed in SEEDS) for d in DIFFICULTIES}
    assert size[2] > 1.25 * size[1]


def test_cases_file_is_what_the_package_makes():
    cases = json.loads((SOFTWARE / "cases.json").read_text())
    assert [case["id"] for case in cases] == [f"{family}-d{d}-s{seed}" for family, seed, d in CASES]
    for case, arguments in zip(cases, CASES, strict=True):
        expected = make_task(*arguments).expected
        assert case["family"] == arguments[0]
        assert case["components"] == len(expected)
        assert case["hollow"] == any(not substantive(value) for value in expected.values())


def test_same_bytes_in_other_processes_and_hash_seeds():
    program = (
        "import sys, json, hashlib; sys.path.insert(0, sys.argv[1])\n"
        "from workflow.curriculum import *\n"
        "tasks = [make_task(f, s, d) for f in reversed(TASK_IDS) for d in (2, 1) for s in (307, 101)]\n"
        "print(hashlib.sha256(json.dumps([[t.files, t.prompt, t.expected] for t in tasks]).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program, str(SOFTWARE)],
            env={"PYTHONHASHSEED": seed, "LC_ALL": locale, "TZ": zone, "PYTHONDONTWRITEBYTECODE": "1"},
            check=True, capture_output=True, text=True, timeout=120,
        ).stdout
        for seed, locale, zone in (("0", "C", "UTC"), ("1", "C.UTF-8", "Asia/Tokyo"), ("4711", "POSIX", "America/Lima"))
    }  # fmt: skip
    assert len(digests) == 1


def test_the_cases_are_the_ones_that_were_released():
    """A change of any case is a new curriculum: change this digest knowingly."""
    digest = hashlib.sha256("".join(every_text(make_task(*case)) for case in CASES).encode()).hexdigest()
    assert digest == (SOFTWARE / "tests" / "curriculum.sha256").read_text().strip()


@pytest.mark.parametrize("family", TASK_IDS)
def test_solvers_fit_into_one_action(family):
    source = (SOFTWARE / "fixtures" / "solvers" / f"{family}.py").read_text()
    assert len(source.encode()) < 12_000
    assert "workflow" not in source
    assert "SOLVER" not in source


def test_an_unknown_family_is_refused():
    with pytest.raises(KeyError):
        make_task("../etc", 101, 1)


@pytest.mark.parametrize("family", TASK_IDS)
def test_an_answer_learnt_from_another_case_earns_next_to_nothing(family):
    tasks = [make_task(family, seed, difficulty) for difficulty in DIFFICULTIES for seed in SEEDS]
    scores = [grade(task, other.expected) for task in tasks for other in tasks if other is not task]
    assert max(scores) <= 1 / 3
    assert sum(scores) / len(scores) < 0.06
