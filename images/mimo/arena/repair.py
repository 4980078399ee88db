"""One repository repair: reset restores the snapshot, finish grades by the record's hidden tests."""

from __future__ import annotations

from arena.cleanup import Cleanup
from arena.episode import Grade
from arena.grade import Grader, Verdict
from arena.guard import remove_planted_hooks
from arena.patchpaths import touched_paths
from arena.record import TaskRecord
from arena.shell import ShellRunner
from arena.tree import Workspace

MAX_ACTIONS = 64


class RepairTask:
    """The only task of a repair image."""

    max_actions = MAX_ACTIONS
    description = "A repository at its base commit and a problem statement; hidden tests grade the repair."

    def __init__(self, record: TaskRecord, workspace: Workspace, runner: ShellRunner, cleanup: Cleanup) -> None:
        self._record, self._workspace, self._cleanup = record, workspace, cleanup
        self._grader = Grader(record, runner, self._before_grading)
        self.last_verdict: Verdict | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        """The record's id."""
        return (self._record.task_id,)

    def prepare(self, task_id: str) -> str:
        """Restore the repository; the instructions are the problem statement."""
        self._workspace.restore()
        self._workspace.settle()
        return self._record.problem_statement

    def grade(self, task_id: str) -> Grade:
        """1.0 or 0.0, and no more than that."""
        verdict = self._grader.grade()
        self.last_verdict = verdict
        outcome = "passed" if verdict.passed else "did not pass"
        return Grade(1.0 if verdict.passed else 0.0, f"The episode is over: the hidden tests {outcome}.\n")

    def _before_grading(self) -> None:
        self._cleanup.wipe_home()
        if self._record.guard == "planted-hooks":
            remove_planted_hooks(self._workspace, touched_paths(self._record.test_patch))
