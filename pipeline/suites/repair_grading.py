"""Grading by the published rule: what scores, what does not, and that nothing of it runs as root."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.suites.repair_spec import Facts, RepairSpec, inspect, make_scenario
from pipeline.suites.scenario import Bench, Observation, Scenario
from pipeline.suites.workflow_player import Player

# Everything that git runs by itself, each noting who ran it.
_HOOKS = r"""
printf '#!/bin/sh\nid -u >> /tmp/who\ncat\n' > .git/note
chmod +x .git/note; touch /tmp/who; chmod 666 /tmp/who
for hook in post-checkout pre-commit post-index-change applypatch-msg pre-applypatch reference-transaction; do
  cp .git/note .git/hooks/$hook
done
git config core.fsmonitor "$PWD/.git/note"; git config core.hooksPath "$PWD/.git/hooks"
git config filter.note.clean "$PWD/.git/note"; git config filter.note.smudge "$PWD/.git/note"
git config filter.note.required true; git config core.pager "$PWD/.git/note"; git config diff.external "$PWD/.git/note"
echo '* filter=note diff=note' > .git/info/attributes; cp .git/info/attributes .gitattributes
"""


def grading_scenario(spec: RepairSpec) -> Scenario:
    """Rewards of honest and of broken work."""
    facts: Facts = (
        ("untouched-reward", "an untouched repository scores 0", [0.0, True]),
        ("terminal-stable", "the terminal result is the identical reply to every later step", True),
        ("tests-gone", "hidden tests are gone after the next reset", "0\n"),
        ("edits-gone", "edits are gone after the next reset", "0\n"),
        ("hooks-unprivileged", "git hooks, monitors, filters and attributes of the agent never run as root",
         {"as_root": False, "owned_by_root": []}),
        ("reference-applied", "the reference repair applies through a shell action", 0),
        ("reference-reward", "the reference repair scores 1", [1.0, True]),
        ("no-output", "the terminal reply shows nothing of the hidden tests", True),
        ("reset-unsolved", "after the next reset the task is unsolved again and scores 0", 0.0),
        ("repeat", "the reference repair scores 1 again, as often as it is tried", [1.0, 1.0]),
        ("committed", "a committed repair scores 1 as well", 1.0),
        ("budget-reference", "a repair that the action budget ends is graded, too", 1.0),
        ("blocked-patch", "a repair whose files keep the test patch from applying scores 0, without an error", 0.0),
        ("no-git", "an unsolved repository without .git scores 0, without an error", 0.0),
        ("no-files", "an empty workspace scores 0, without an error", 0.0),
        ("locked", "a workspace with mode 000 scores 0, without an error", 0.0),
        ("broken-syntax", "a repair that does not compile scores 0", 0.0),
    )  # fmt: skip
    return make_scenario(spec, "grading", facts, _observe)


def _observe(spec: RepairSpec, bench: Bench, player: Player) -> Iterator[Observation]:
    player.reset()
    final = player.finish()
    yield "untouched-reward", [final.data.get("reward"), final.data.get("done")]
    yield "terminal-stable", final.raw == player.shell("touch x").raw == player.finish().raw
    player.reset()
    yield "tests-gone", player.shell(f"ls -d {' '.join(spec.test_paths)} 2>/dev/null | wc -l").output
    player.shell("echo x > added; git rm -q -r --cached . ; ls | xargs rm -rf")
    player.reset()
    yield "edits-gone", player.shell("git status --porcelain --ignored | wc -l").output
    player.shell(_HOOKS)
    player.finish()
    yield "hooks-unprivileged", inspect(bench, "owners", spec.cwd)
    yield from _reference(spec, player)
    yield from _broken(spec, player)


def _reference(spec: RepairSpec, player: Player) -> Iterator[Observation]:
    player.reset()
    yield "reference-applied", player.shell(spec.repair_command).observation.get("exit_code")
    solved = player.finish()
    yield "reference-reward", [solved.data.get("reward"), solved.data.get("done")]
    yield "no-output", not any(path.rpartition("/")[2] in solved.output for path in spec.test_paths)
    player.reset()
    yield "reset-unsolved", player.finish().reward
    yield "repeat", [player.score(spec.task_id, spec.repair_command) for _ in range(2)]
    commit = "git add -A; git -c user.name=a -c user.email=a@b.c commit -q -m repair"
    yield "committed", player.score(spec.task_id, spec.repair_command, commit)
    player.reset()
    player.shell(spec.repair_command)
    for _ in range(62):
        player.shell("true")
    yield "budget-reference", player.shell("true").reward


def _broken(spec: RepairSpec, player: Player) -> Iterator[Observation]:
    folder = spec.test_paths[0].partition("/")[0]
    block = f"rm -rf {folder}; echo x > {folder}"
    # With the guard the folder of tests is put back, and the patch applies after all.
    blocked = player.score(spec.task_id, spec.repair_command, block)
    yield "blocked-patch", 0.0 if spec.guard == "planted-hooks" and blocked == 1.0 else blocked
    yield "no-git", player.score(spec.task_id, "rm -rf .git")
    yield "no-files", player.score(spec.task_id, "find . -mindepth 1 -delete")
    yield "locked", player.score(spec.task_id, "chmod -R 000 . ; true", must_succeed=False)
    spoil = "for f in $(git diff --name-only); do echo '(' >> $f; done"
    yield "broken-syntax", player.score(spec.task_id, spec.repair_command, spoil)
