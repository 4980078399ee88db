"""Grading small repositories by the published rule, and with the guard: honest work, broken work, cheats."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from arena.agent import Agent
from arena.canary import canaries_for
from arena.cleanup import Cleanup
from arena.patchpaths import touched_paths
from arena.processes import Reaper
from arena.record import TaskRecord
from arena.repair import RepairTask
from arena.shell import ShellRunner
from arena.snapshot import Snapshot
from arena.tree import Workspace

HIDDEN = """diff --git a/tests/test_answer.py b/tests/test_answer.py
new file mode 100644
--- /dev/null
+++ b/tests/test_answer.py
@@ -0,0 +1,7 @@
+import unittest
+import product
+
+
+class Answer(unittest.TestCase):
+    def test_it(self):
+        self.assertEqual(product.answer(), 42)
"""
COMMAND = "PYTHONPATH=src:tests /usr/bin/python3 -m unittest test_answer && tests/also.sh"
ALSO = """diff --git a/tests/also.sh b/tests/also.sh
old mode 100644
new mode 100755
index 3b18e51..9daeafb
--- a/tests/also.sh
+++ b/tests/also.sh
@@ -1 +1 @@
-exit 1
+exit 0
"""


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "safe.directory=*", "-c", "user.name=t", "-c", "user.email=t@t.test", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def record(workspace: Path) -> TaskRecord:
    (workspace / "src").mkdir()
    (workspace / "src/product.py").write_text("def answer():\n    return 41\n")
    (workspace / "tests").mkdir()
    (workspace / "tests/also.sh").write_text("exit 1\n")
    git(workspace, "init", "-q", "-b", "main")
    git(workspace, "add", "-A")
    git(workspace, "commit", "-q", "-m", "base")
    base = git(workspace, "rev-parse", "HEAD")
    return TaskRecord("task", base, "none", str(workspace), "Repair it.", HIDDEN + ALSO, COMMAND, 20)


Make = Callable[[TaskRecord], RepairTask]


@pytest.fixture
def make(
    workspace: Path, ground: Path, agent: Agent, runner: ShellRunner, snapshot_of: Callable[[Path], Snapshot]
) -> Make:
    def make(record: TaskRecord) -> RepairTask:
        cleanup = Cleanup(agent, str(workspace), Reaper(), str(ground), frozenset({str(workspace)}))
        task = RepairTask(record, Workspace(str(workspace), snapshot_of(workspace), agent), runner, cleanup)
        assert task.prepare("task") == "Repair it."
        return task

    return make


REPAIR = "echo 'def answer(): return 42' > src/product.py"
EXIT = "echo 'import os; os._exit(0)' > "


@pytest.mark.parametrize("guard", ["none", "planted-hooks"])
@pytest.mark.parametrize(
    ("work", "reward", "step"),
    [
        ("true", 0.0, "test"),
        (REPAIR, 1.0, "test"),
        (f"{REPAIR}; git add -A; git -c user.name=a -c user.email=a@b.c commit -qm x", 1.0, "test"),
        (f"{REPAIR}; echo garbage > tests/also.sh; mkdir tests/test_answer.py", 1.0, "test"),
        ("echo '(' > src/product.py", 0.0, "test"),
        (f"{REPAIR}; echo 'sleep 100 &' >> .git/hooks/x; sleep 100 & true", 1.0, "test"),
        ("find . -mindepth 1 -delete", 0.0, None),
        ("rm -rf src; ln -s /etc src", 0.0, "test"),
    ],
)
def test_rewards(
    make: Make, record: TaskRecord, runner: ShellRunner, guard: str, work: str, reward: float, step: str | None
) -> None:
    task = make(replace(record, guard=guard))
    assert runner.run(f"mkdir -p .git/hooks; {work}").exit_code == 0
    assert task.grade("task").reward == reward
    assert task.last_verdict is not None
    assert step in (None, task.last_verdict.step)


CHEATS = {
    "sitecustomize": f"{EXIT} src/sitecustomize.py",
    "shadow": f"{EXIT} src/unittest.py",
    "exit-on-import": f"{EXIT} src/product.py",
    "test-package": f"mkdir -p src/unittest; {EXIT} src/unittest/__init__.py",
    "shadow-link": f"mkdir other; {EXIT} other/__init__.py; ln -s ../other src/unittest",
    "exit-at-end": "printf 'import atexit, os\\natexit.register(os._exit, 0)\\n' > src/product.py",
    "filter": "git config filter.x.smudge 'echo pass; cat >/dev/null'; git config filter.x.clean cat; "
    "echo 'tests/test_answer.py filter=x' > .git/info/attributes; echo 'pass = 0' > src/product.py",
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_the_guard_stops_what_the_published_rule_lets_through(
    make: Make, record: TaskRecord, runner: ShellRunner, cheat: str
) -> None:
    rewards = []
    task = make(record)
    for guard in ("none", "planted-hooks"):
        task = task if guard == "none" else make(replace(record, guard="planted-hooks"))
        assert runner.run("mkdir -p .git/info; " + CHEATS[cheat]).exit_code == 0
        rewards.append(task.grade("task").reward)
        assert task.prepare("task") == record.problem_statement
    assert rewards == [1.0, 0.0]


def test_nothing_of_git_runs_as_root(make: Make, record: TaskRecord, runner: ShellRunner, ground: Path) -> None:
    task = make(record)
    (ground / "notes").mkdir()
    (ground / "notes").chmod(0o777)
    notes = ground / "notes" / "who"
    note = (
        f"printf '#!/bin/sh\\nid -u >> {notes}\\ncat\\n' > .git/note; chmod +x .git/note; mkdir -p .git/hooks .git/info"
    )
    runner.run(
        f"{note}; for h in post-checkout post-index-change; do cp .git/note .git/hooks/$h; done; "
        'git config core.fsmonitor "$PWD/.git/note"; git config filter.n.smudge "$PWD/.git/note"; '
        "git config filter.n.clean cat; echo '* filter=n' > .git/info/attributes"
    )
    task.grade("task")
    assert set(notes.read_text().split()) == {str(runner.agent.uid)}


def test_a_patch_that_does_not_apply_is_no_error(make: Make, record: TaskRecord, runner: ShellRunner) -> None:
    task = make(record)
    runner.run(f"{REPAIR}; chmod 500 tests")
    assert task.grade("task").reward == 0.0
    assert task.last_verdict is not None
    assert task.last_verdict.step in ("restore", "apply")


def test_time_is_up(make: Make, record: TaskRecord, runner: ShellRunner) -> None:
    task = make(replace(record, verifier_timeout_s=0.5))
    runner.run("printf 'import time\\ntime.sleep(30)\\n' > src/product.py")
    assert task.grade("task").reward == 0.0


def test_hidden_tests_are_gone_after_the_next_reset(make: Make, record: TaskRecord, workspace: Path) -> None:
    task = make(record)
    task.grade("task")
    assert (workspace / "tests/test_answer.py").exists()
    task.prepare("task")
    assert not (workspace / "tests/test_answer.py").exists()
    assert (workspace / "tests/also.sh").read_text() == "exit 1\n"


@pytest.mark.parametrize(
    ("patch", "paths"),
    [
        (HIDDEN + ALSO, ("tests/also.sh", "tests/test_answer.py")),
        ("diff --git a/x y b/x y\nold mode 100644\nnew mode 100755\n", ("x y",)),
        ('diff --git "a/t\\303\\251\\n" "b/t\\303\\251\\n"\nnew file mode 100644\nindex 0000000..e69de29\n', ("té\n",)),
        ("diff --git a/a b/b\nsimilarity index 100%\nrename from a\nrename to b\n", ("a", "b")),
        ("diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n---- a/no\n-x\n++++ b/no\n+y\n", ("f",)),
        ("diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", ("f",)),
    ],
)
def test_touched_paths(patch: str, paths: tuple[str, ...]) -> None:
    assert touched_paths(patch) == paths


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", ".git/hooks/x", "a/../b"])
def test_paths_outside_the_repository_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match="touches"):
        touched_paths(f"--- a/{path}\n+++ b/{path}\n")


def test_canaries_differ_and_know_languages() -> None:
    assert canaries_for(["README.md"]) == ()
    first, second = canaries_for(["tests/test_a.py"]), canaries_for(["tests/test_a.py"])
    assert first != second
    assert [path for path, _ in canaries_for(["x/a_test.go", "a", "tests/b_test.py"])] == [
        "tests/b_test.py",
        "x/a_test.go",
    ]


def test_canaries_make_every_selected_test_fail(ground: Path) -> None:
    test = ground / "test_it.py"
    test.write_text("import unittest\n\nclass A(unittest.TestCase):\n    def test_a(self):\n        pass\n")
    command = ["/usr/bin/python3", "-m", "unittest", "test_it.A.test_a"]
    assert subprocess.run(command, cwd=ground, check=False, capture_output=True).returncode == 0
    ((_, text),) = canaries_for(["test_it.py"])
    test.write_text(test.read_text() + text)
    failed = subprocess.run(command, cwd=ground, check=False, capture_output=True, text=True)
    assert (failed.returncode, "failures=1" in failed.stderr) == (1, True)
