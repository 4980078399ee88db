"""What an agent sees of the machine: commands of one episode each, and the output that each must give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from pipeline.suites.scenario import Bench, Observation, Scenario, Statement
from pipeline.suites.workflow_player import Player, play_framework
from pipeline.suites.workflow_spec import WorkflowSpec

_KNOWN = "_|HOME|LANG|LOGNAME|OLDPWD|PATH|PWD|SHELL|SHLVL|TERM|USER"
_OPEN_DESCRIPTORS = """
import os, select
poll = select.poll()
for number in range(1024):
    poll.register(number)
closed = {number for number, events in poll.poll(0) if events & select.POLLNVAL}
print([number for number in range(1024) if number not in closed])
"""


@dataclass(frozen=True)
class Probe:
    """`commands` are actions of one episode; `output` is what the last one prints."""

    name: str
    text: str
    commands: tuple[str, ...]
    output: str


PROBES = (
    Probe(
        "identity", "the agent is UID and GID 2000 without other groups", ("id -u; id -g; id -G",), "2000\n2000\n2000\n"
    ),
    Probe(
        "place",
        "actions start in the workspace, with a home of their own",
        ('pwd; echo "$HOME"; [ -w "$HOME" ] && echo writable',),
        "/workspace/repo\n/home/arena-agent\nwritable\n",
    ),
    Probe(
        "environment",
        "no variable of the server reaches an action",
        (f"env | cut -d= -f1 | grep -cvxE '{_KNOWN}'",),
        "0\n",
    ),
    Probe("stdin", "an action has no input", ("readlink /proc/self/fd/0; wc -c",), "/dev/null\n0\n"),
    Probe(
        "descriptors",
        "an action inherits no descriptor of the server",
        (f"python3 -I -c '{_OPEN_DESCRIPTORS}'",),
        "[0, 1, 2]\n",
    ),
    Probe(
        "privileges", "no program can give an action more rights", ("grep -c 'NoNewPrivs:.1' /proc/self/status",), "1\n"
    ),
    Probe("arena-mode", "/opt/arena belongs to root alone", ("stat -c '%a %u:%g' /opt/arena",), "700 0:0\n"),
    Probe(
        "arena-unreadable",
        "neither graders nor records can be listed or read",
        ("ls /opt/arena 2>/dev/null | wc -l; cat /opt/arena/*.json /opt/arena/*/*.py 2>/dev/null | wc -c",),
        "0\n0\n",
    ),
    Probe(
        "arena-unwritable",
        "nothing can be put into /opt/arena",
        ("touch /opt/arena/x 2>/dev/null; echo $?; mkdir /opt/arena/workflow/x 2>/dev/null; echo $?",),
        "1\n1\n",
    ),
    Probe("server-environment", "/proc/1/environ is unreadable", ("cat /proc/1/environ 2>/dev/null | wc -c",), "0\n"),
    Probe(
        "server-memory",
        "/proc/1/mem and maps are unreadable",
        ("head -c 1 /proc/1/mem 2>/dev/null | wc -c; cat /proc/1/maps 2>/dev/null | wc -c",),
        "0\n0\n",
    ),
    Probe(
        "server-files",
        "/proc/1/fd, root and cwd are closed",
        ("ls /proc/1/fd 2>/dev/null | wc -l; ls /proc/1/root/ /proc/1/cwd/ 2>/dev/null | wc -l",),
        "0\n0\n",
    ),
    Probe("server-signals", "the server cannot be signalled", ("kill -TERM 1 2>/dev/null; echo $?",), "1\n"),
    Probe(
        "server-trace",
        "the server cannot be traced",
        ("python3 -I -c 'import ctypes; print(ctypes.CDLL(None).ptrace(16, 1, 0, 0))'",),
        "-1\n",
    ),
    Probe(
        "workspace-parent",
        "the workspace itself cannot be moved or replaced",
        ("mv /workspace/repo /workspace/other 2>/dev/null; echo $?; touch /workspace/x 2>/dev/null; echo $?",),
        "1\n1\n",
    ),
    Probe(
        "system",
        "system folders are not writable",
        ("for d in / /etc /usr /usr/bin /usr/lib /opt /root /var; do [ -w $d ] && echo $d; done; echo none",),
        "none\n",
    ),
    Probe(
        "base-task",
        "the repository of the image below is gone",
        ("find / -xdev \\( -name .git -o -iname '*pyromat*' -o -iname '*nufft*' \\) 2>/dev/null | wc -l",),
        "0\n",
    ),
    Probe(
        "fixtures", "no reference solver is in reach", ("find / -xdev -path '*solvers*' 2>/dev/null | wc -l",), "0\n"
    ),
    Probe(
        "survivors",
        "no process outlives its action",
        (
            "setsid sleep 311 >/dev/null & (nohup sleep 311 >/dev/null &); (trap '' TERM HUP; sleep 311) & true",
            "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'sleep 31[1]'",
        ),
        "0\n",
    ),
)


def probe_scenario(spec: WorkflowSpec) -> Scenario:
    """The framework's client, then all probes, each in an episode of its own."""
    episode: JsonValue = {"reset": 0, "output": "here\n", "done": True}
    client = Statement("workflow.image.framework-client", "the framework's own Python client plays an episode", episode)
    statements = [Statement(f"workflow.image.{probe.name}", probe.text, probe.output) for probe in PROBES]

    def run(bench: Bench) -> Iterator[Observation]:
        yield client.id, play_framework(bench, spec.cases[0].id)
        player = Player(bench, spec.reset_s, spec.grading_s)
        try:
            for number, probe in enumerate(PROBES):
                player.reset(spec.cases[number % len(spec.cases)].id)
                yield f"workflow.image.{probe.name}", [player.shell(command).output for command in probe.commands][-1]
        finally:
            player.close()

    return Scenario("workflow.image.probes", (client, *statements), run)
