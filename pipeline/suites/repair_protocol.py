"""The wire: frames that are refused while the episode goes on, sessions that come, go and vanish, the action budget."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from time import monotonic

from pydantic import JsonValue

from pipeline.suites.repair_spec import RESET_S, Facts, RepairSpec, inspect, make_scenario
from pipeline.suites.scenario import Bench, Observation, Scenario
from pipeline.suites.workflow_player import Player, turned_away_code

MAX_ACTIONS = 64
_LEAVE_S, _CLEAN_S = 0.5, 2.0
_MARK, _ALIVE = "echo alive > /tmp/mark", "cat /tmp/mark"
_ROUTES = """python3 -c "
import urllib.request
open = urllib.request.urlopen
print(*(open('http://127.0.0.1:8000/' + path, timeout=5).status for path in ('health', 'metadata', 'state')))
" """
_GOES_ON: JsonValue = {"kind": "error", "then": "alive\n"}


def _step(**fields: JsonValue) -> str:
    return json.dumps({"type": "step", "data": fields})


def _reset(**fields: JsonValue) -> str:
    return json.dumps({"type": "reset", "data": fields})


FRAMES: tuple[tuple[str, str, str | bytes], ...] = (
    ("malformed", "text that is not JSON", '{"type": "step"'),
    ("list", "a list", "[]"),
    ("number", "a number", "1"),
    ("null", "null", "null"),
    ("text", "a string", '"reset"'),
    ("empty", "an empty frame", ""),
    ("binary", "a binary frame", b'{"type": "state"}'),
    ("deep", "a deeply nested frame", "[" * 50_000),
    ("oversized", "a frame of 2 MB", _step(operation="shell", command="x" * 2_000_000)),
    ("digits", "a number of 5,000 digits", '{"type": "reset", "data": {"seed": ' + "9" * 5000 + "}}"),
    ("nan", "a number that is not finite", '{"type": "step", "data": {"operation": "shell", "metadata": {"x": NaN}}}'),
    ("surrogate", "half a surrogate pair", '{"type": "step", "data": {"operation": "shell", "command": "\\ud800"}}'),
    ("unknown-type", "an unknown type", '{"type": "grade", "data": {}}'),
    ("type-object", "a type that is no string", '{"type": {"a": 1}, "data": {}}'),
    ("no-type", "no type", '{"data": {}}'),
    ("no-data", "a step without data", '{"type": "step"}'),
    ("frame-field", "an unknown field of a frame", '{"type": "state", "more": 1}'),
    ("step-data", "a step whose data is no object", '{"type": "step", "data": []}'),
    ("no-operation", "a step without operation", _step(command="true")),
    ("unknown-operation", "an unknown operation", _step(operation="grade")),
    ("unknown-field", "an unknown field of a step", _step(operation="shell", command="true", reward=1)),
    ("command-type", "a command that is no string", _step(operation="shell", command=["true"])),
    ("command-length", "a command of 16,001 characters", _step(operation="shell", command="#" * 16_001)),
    ("command-nul", "a command with a NUL", _step(operation="shell", command="true\0")),
    ("unknown-task", "a reset to an unknown task", _reset(task_id="format-code-task-999999")),
    ("task-path", "a reset to a path", _reset(task_id="../../etc/passwd")),
    ("task-type", "a reset to a task id that is no string", _reset(task_id=7)),
    ("reset-field", "an unknown field of a reset", _reset(guard="none")),
    ("seed-text", "a seed that is no number", _reset(seed="1")),
    ("seed-boolean", "a seed that is a boolean", _reset(seed=True)),
    ("seed-negative", "a negative seed", _reset(seed=-1)),
)


def frames_scenario(spec: RepairSpec) -> Scenario:
    """Every refused frame gets an error reply, and the episode goes on."""
    facts = tuple((name, f"{text} gets an error reply and the episode goes on", _GOES_ON) for name, text, _ in FRAMES)
    return make_scenario(spec, "frame", facts, _observe_frames)


def _observe_frames(spec: RepairSpec, bench: Bench, player: Player) -> Iterator[Observation]:
    for number, (name, _, frame) in enumerate(FRAMES):
        if number % (MAX_ACTIONS - 8) == 0:
            player.reset()
            player.shell(_MARK)
        reply = player.send(frame)
        yield name, {"kind": reply.kind, "then": player.shell(_ALIVE).output}


def sessions_scenario(spec: RepairSpec) -> Scenario:
    """Order, sessions and budget."""
    facts: Facts = (
        ("step-first", "a step before a reset is an error, a shell action and a finish alike", ["error", "error"]),
        ("seed", "a seed never changes the task's inputs", True),
        ("state", "a state request counts the actions", 2),
        ("restart", "a reset in the middle of an episode begins it anew", ["alive\n", ""]),
        ("second-client", "a second client is turned away and the first goes on", ["CAPACITY_REACHED", "alive\n"]),
        ("http", "stateless HTTP can neither reset nor grade while an episode runs", [[False, False], "alive\n"]),
        ("health", "/health, /metadata and /state answer while a command runs", True),
        (
            "http-limits",
            "HTTP opens no session that would keep the next client out, and refuses an endless body",
            [False, "413"],
        ),
        ("next-client", "when a client has gone, the next one begins without an episode", "error"),
        (
            "vanished",
            f"a client that vanishes in a command of 50 s leaves a clean session within {_CLEAN_S:g} s",
            [0.0, ""],
        ),
        ("huge-frame", "a frame above 16 MiB ends at most its own session", 0.0),
        ("budget", f"{MAX_ACTIONS} shell actions are allowed, and the last one is graded", [False, True, 0.0]),
        ("budget-terminal", "after the last action every step returns the identical reply", True),
    )
    return make_scenario(spec, "session", facts, _observe_sessions)


def _observe_sessions(spec: RepairSpec, bench: Bench, player: Player) -> Iterator[Observation]:
    yield "step-first", [player.shell("true").kind, player.finish().kind]
    first, second = player.reset(seed=1), player.reset(seed=2)
    yield "seed", first.raw == second.raw
    player.shell(_MARK)
    player.shell("true")
    state = player.send('{"type": "state"}').data
    yield "state", state.get("step_count")
    player.reset()
    player.shell(_MARK)
    before = player.shell(_ALIVE).output
    player.reset()
    yield "restart", [before, player.shell(_ALIVE + " 2>/dev/null").output]
    player.shell(_MARK)
    yield "second-client", [turned_away_code(bench), player.shell(_ALIVE).output]
    yield "http", [inspect(bench, "stateless"), player.shell(_ALIVE).output]
    # The server's own routes, asked from inside while the command that asks them is running.
    yield "health", player.shell(_ROUTES).output == "200 200 200\n"
    player.close()
    yield "http-limits", inspect(bench, "requests")
    yield "next-client", player.shell("true").kind
    yield from _losses(bench, player)
    yield from _budget(player)


def _losses(bench: Bench, player: Player) -> Iterator[Observation]:
    player.close()
    lost = Player(bench, RESET_S, RESET_S)
    lost.reset()
    gone = _send_and_leave(lost, _step(operation="shell", command="touch /tmp/lost; sleep 50"))
    begun = player.reset()
    late_s = monotonic() - gone - _CLEAN_S
    reward = begun.data.get("reward", begun.output)
    yield "vanished", [reward if late_s <= 0 else f"{late_s:.1f} s late", player.shell("ls /tmp").output]
    player.close()
    _send_and_leave(Player(bench, RESET_S, RESET_S), "x" * (17 << 20))
    yield "huge-frame", player.reset().data.get("reward")


def _send_and_leave(player: Player, frame: str) -> float:
    """Send a frame and close the socket while the reply is still to come; the moment of leaving, on `monotonic`."""
    gone = monotonic() + _LEAVE_S
    with contextlib.suppress(Exception):  # no reply is what is wanted
        player.send(frame, _LEAVE_S)
    player.close()
    return gone


def _budget(player: Player) -> Iterator[Observation]:
    player.reset()
    for _ in range(MAX_ACTIONS - 2):
        player.shell("true")
    before_last = player.shell("true")
    last = player.shell("echo last")
    yield "budget", [before_last.data.get("done"), last.data.get("done"), last.data.get("reward")]
    yield "budget-terminal", last.raw == player.shell("echo more").raw == player.finish().raw
