"""Grading by the published rule, all of it as the agent's account.

1. Restore every path that the test patch touches to the base commit; remove those that the base lacks.
2. `git apply` the test patch.
3. Run `{ test_command; } </dev/null`; the reward is 1 if it exits 0 within the record's time, else 0.
4. With the guard `planted-hooks` only: the hidden tests are made to fail, and now the command must not exit 0.

What the agent's edits break is a reward of 0; what our side cannot start is an InfrastructureError. Nothing of the test
output goes to the client: it would teach the hidden tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from arena.canary import canaries_for
from arena.guard import GUARDED_VARIABLES
from arena.patchpaths import touched_paths
from arena.record import TaskRecord
from arena.shell import TIMED_OUT, ShellResult, ShellRunner

GIT_TIMEOUT_S = 60.0

# For each path: from the base commit when it has it, else gone. Pathspec magic is off; names arrive as arguments.
_RESTORE = """
export GIT_LITERAL_PATHSPECS=1
base=$1; shift
for path in "$@"; do
  rm -rf -- "$path" || exit 1
  if git cat-file -e "$base:$path" 2>/dev/null; then git checkout -q "$base" -- "$path" || exit 1; fi
done
"""


@dataclass(frozen=True)
class Verdict:
    """`step` is where grading ended: restore, apply, test."""

    passed: bool
    step: str
    exit_code: int


@dataclass(frozen=True)
class Grader:
    """Grades the workspace of `runner`; `prepare` runs first."""

    record: TaskRecord
    runner: ShellRunner
    prepare: Callable[[], None]

    def grade(self) -> Verdict:
        """Numbered as above; the workspace holds the hidden tests afterwards, until the next reset."""
        self.prepare()
        # 1.
        restored = self._restore()
        if restored.exit_code != 0:
            return Verdict(False, "restore", restored.exit_code)
        # 2.
        applied = self._git("apply", "-", stdin=self.record.test_patch.encode("utf-8", "surrogateescape"))
        if applied.exit_code != 0:
            return Verdict(False, "apply", applied.exit_code)
        # 3.
        tested = self._test()
        if tested.exit_code != 0:
            return Verdict(False, "test", tested.exit_code)
        # 4.
        if self._is_guarded and not self._canaries_fail():
            return Verdict(False, "canary", 0)
        return Verdict(True, "test", 0)

    @property
    def _is_guarded(self) -> bool:
        return self.record.guard == "planted-hooks"

    def _restore(self) -> ShellResult:
        paths = touched_paths(self.record.test_patch)
        argv = ["/bin/bash", "-c", _RESTORE, "restore", self.record.base_commit, *paths]
        return self._execute(argv, GIT_TIMEOUT_S)

    def _git(self, *arguments: str, stdin: bytes = b"") -> ShellResult:
        return self._execute(["/usr/bin/git", *arguments], GIT_TIMEOUT_S, stdin)

    def _test(self) -> ShellResult:
        command = f"{{ {self.record.test_command}\n}} </dev/null"
        return self._execute(["/bin/bash", "-c", command], self.record.verifier_timeout_s)

    def _canaries_fail(self) -> bool:
        """Whether tests that must fail do; True for a language in which we cannot write them."""
        canaries = canaries_for(touched_paths(self.record.test_patch))
        for path, text in canaries:
            argv = ["/bin/bash", "-c", '[ -e "$1" ] && cat >> "$1"', "append", path]
            if self._execute(argv, GIT_TIMEOUT_S, text.encode()).exit_code != 0:
                return False
        return not canaries or self._test().exit_code not in (0, TIMED_OUT)

    def _execute(self, argv: list[str], timeout_s: float, stdin: bytes = b"") -> ShellResult:
        variables = GUARDED_VARIABLES if self._is_guarded else {}
        return self.runner.execute(argv, timeout_s=timeout_s, stdin=stdin, variables=variables)
