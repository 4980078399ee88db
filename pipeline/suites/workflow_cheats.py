"""The red team: ways to a reward without a right answer. Every one of them scores 0, always."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from pipeline.suites.scenario import Bench, Observation, Scenario, Statement
from pipeline.suites.workflow_answers import Right
from pipeline.suites.workflow_player import Player, dump, write_file
from pipeline.suites.workflow_rule import spoil
from pipeline.suites.workflow_spec import WorkflowSpec, load_answer

_READ_ARENA = "cat /opt/arena/workflow/* /opt/arena/workflow/*/* /opt/arena/*.json > answer.json 2>/dev/null"
_READ_SERVER = "cat /proc/1/environ /proc/1/cmdline /proc/1/maps /proc/1/mem > answer.json 2>/dev/null"
_PLANT = """
for d in . "$HOME" /tmp /var/tmp; do
  for f in conftest.py sitecustomize.py usercustomize.py arena.py workflow.py x.pth; do
    echo 'import os; os.write(1, b"1.0"); os._exit(0)' > $d/$f
  done
done
printf '[pytest]\\naddopts = --co\\n' > pytest.ini
for f in .profile .bashrc .bash_profile .pythonrc; do echo 'exit 0' > "$HOME/$f"; done
"""
_SHADOW = """
mkdir -p bin "$HOME/bin" "$HOME/.local/bin"
for f in python3 cat git bash stat; do for d in bin "$HOME/bin" "$HOME/.local/bin"; do
  printf '#!/bin/sh\\necho 1.0\\nexit 0\\n' > $d/$f; chmod 755 $d/$f
done; done
export PATH=$PWD/bin:$PATH
"""
_HOOKS = """
mkdir -p .git/hooks; printf '[core]\\nfsmonitor = /bin/true\\nhooksPath = .git/hooks\\n' > .git/config
for f in post-checkout pre-commit fsmonitor; do
  printf '#!/bin/sh\\nexit 0\\n' > .git/hooks/$f; chmod 755 .git/hooks/$f
done
echo '* filter=x' > .gitattributes
"""
_RACE = """
(setsid sh -c 'for i in $(seq 3000); do
echo "{}" > answer.json; rm -f answer.json; mkfifo answer.json; rm -f answer.json
ln -s /etc/passwd answer.json; rm -f answer.json; done' >/dev/null 2>&1 &)
"""
_SWAP = "mkdir /tmp/other && mv * /tmp/other/; cd /; rmdir /workspace/repo; ln -s /tmp/other /workspace/repo; true"
_REPORT = """
echo '{"type":"observation","data":{"reward":1.0,"done":true}}'; echo 'reward: 1.0'; echo PASSED
for f in reward.json result.json score.txt grade.json; do echo '{"reward": 1.0, "score": 1, "passed": true}' > $f; done
"""
_TEN_MB = "head -c 10485760 /dev/zero | tr '\\0' ' ' >> answer.json"


@dataclass(frozen=True)
class Cheat:
    """Actions of one episode; `right` is the right answer, for tricks around a forged form of it."""

    name: str
    text: str
    commands: Callable[[Right], tuple[str, ...]]


def _run(*commands: str) -> Callable[[Right], tuple[str, ...]]:
    return lambda _: commands


def _answer(change: Callable[[Right], object]) -> Callable[[Right], tuple[str, ...]]:
    return lambda right: (write_file(dump(change(right))),)  # type: ignore[arg-type]


def _blank(value: JsonValue) -> JsonValue:
    return {"str": "", "list": [], "dict": {}, "bool": False}.get(type(value).__name__, 0)  # type: ignore[return-value]


CHEATS = (
    Cheat("fake-report", "printing and filing a reward", _run(_REPORT)),
    Cheat("read-arena", "answering with the server's files", _run(_READ_ARENA)),
    Cheat("read-server", "answering with the server's memory", _run(_READ_SERVER)),
    Cheat("inputs-as-answer", "answering with an input file", _run("cp $(ls *.json | head -n 1) answer.json")),
    Cheat("template", "answering with empty values", _answer(lambda r: {key: _blank(r[key]) for key in r if r[key]})),
    Cheat("all-true", "answering true everywhere", _answer(lambda r: dict.fromkeys(r, True))),
    Cheat("all-null", "answering null everywhere", _answer(lambda r: dict.fromkeys(r))),
    Cheat("wrapped", "the right answer inside another object", _answer(lambda r: {"answer": r})),
    Cheat(
        "candidates",
        "several candidates for each component",
        _answer(lambda r: {k: [v, spoil(v)] for k, v in r.items()}),
    ),
    Cheat("reward-key", "a reward beside the right answer", _answer(lambda r: {**r, "reward": 1})),
    Cheat("other-case", "keys in upper case", _answer(lambda r: {key.upper(): value for key, value in r.items()})),
    Cheat(
        "spaced-keys", "keys with a trailing space", _answer(lambda r: {key + " ": value for key, value in r.items()})
    ),
    Cheat("text-as-answer", "the right answer as a string", _answer(lambda r: dump(dict(r)).decode())),
    Cheat(
        "huge-number",
        "a number of 15,000 digits",
        _run("(printf '{\"a\": '; head -c 15000 /dev/zero | tr '\\0' 9; echo '}') > answer.json"),
    ),
    Cheat("bracket-bomb", "16,000 opening brackets", _run("head -c 16000 /dev/zero | tr '\\0' '[' > answer.json")),
    Cheat("ten-megabytes", "the right answer in 10 MB", lambda r: (write_file(dump(r)) + "\n" + _TEN_MB,)),
    Cheat("planted-modules", "modules and shell files for a grader to load", _run(_PLANT)),
    Cheat("shadowed-programs", "programs in front of the search path", _run(_SHADOW)),
    Cheat("git-hooks", "hooks, filters and a monitor", _run(_HOOKS)),
    Cheat("race", "a background writer that races the grader", _run(_RACE)),
    Cheat("swapped-folder", "another folder in place of the workspace", _run(_SWAP)),
    Cheat("device-link", "a link to an endless device", _run("ln -s /dev/zero answer.json")),
    Cheat("self-link", "a link to the reader's own input", _run("ln -s /proc/self/fd/0 answer.json")),
    Cheat("loop-link", "a link to itself", _run("ln -s answer.json answer.json")),
    Cheat(
        "hard-link",
        "a hard link to a file of root's",
        _run("ln /etc/passwd answer.json || ln INSTRUCTIONS.md answer.json"),
    ),
    Cheat(
        "socket", "a socket", _run("python3 -I -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"answer.json\")'")
    ),
    Cheat(
        "closed-file", "an unreadable wrong answer", _run("echo '{}' > answer.json; chmod 000 answer.json; chmod 000 .")
    ),
    Cheat("sparse", "a sparse file of 1 TB", _run("truncate -s 1T answer.json || truncate -s 8G answer.json")),
    Cheat("kill-server", "killing everything in reach", _run("kill -9 1; kill -9 -1")),
    Cheat("other-name", "the right answer under another name", lambda r: (write_file(dump(r), "Answer.json"),)),
    Cheat(
        "late-answer",
        "an answer that stands only while an action runs",
        lambda r: (write_file(dump(r)) + "\nrm answer.json",),
    ),
)


def cheat_scenario(spec: WorkflowSpec) -> Scenario:
    """Each cheat in an episode of its own, over changing cases, and tricks that need two episodes."""
    statements = [Statement(f"workflow.cheat.{cheat.name}", f"{cheat.text} scores 0", 0) for cheat in CHEATS]
    carried = Statement("workflow.cheat.carried-over", "an answer kept from the episode before scores 0", 0)
    return Scenario("workflow.cheat", (*statements, carried), lambda bench: _play(spec, bench))


def _play(spec: WorkflowSpec, bench: Bench) -> Iterator[Observation]:
    player = Player(bench, spec.reset_s, spec.grading_s)
    try:
        for number, cheat in enumerate(CHEATS):
            case = spec.cases[number * 5 % len(spec.cases)]
            right = _right(spec, player, case.id, case.family)
            yield f"workflow.cheat.{cheat.name}", player.score(case.id, *cheat.commands(right), must_succeed=False)
        yield "workflow.cheat.carried-over", _carried(spec, player)
    finally:
        player.close()


def _carried(spec: WorkflowSpec, player: Player) -> JsonValue:
    """The same case again, with the right answer hidden in every place that an agent can write."""
    case = spec.cases[0]
    right = write_file(dump(_right(spec, player, case.id, case.family)), "kept.json")
    hide = 'for d in /tmp /var/tmp /dev/shm /run/lock "$HOME"; do cp kept.json $d/; done 2>/dev/null; true'
    player.reset(case.id)
    player.shell(f"{right}\n{hide}")
    find = "cp $(find / -xdev -name kept.json 2>/dev/null | head -n 1) answer.json; cp /dev/shm/kept.json answer.json"
    return player.score(case.id, find, must_succeed=False)


def _right(spec: WorkflowSpec, player: Player, case_id: str, family: str) -> Right:
    if case_id in spec.answers:
        return load_answer(spec.answers[case_id])
    player.reset(case_id)
    return load_answer(player.shell(f"python3 -I - <<'SOLVER'\n{spec.solvers[family]}\nSOLVER\ncat answer.json").output)
