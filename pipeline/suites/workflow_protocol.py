"""The wire: refused frames that leave the episode as it was, sessions, and the published schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue

from pipeline.suites.scenario import Bench, Observation, Scenario, Statement
from pipeline.suites.workflow_player import Player, turned_away_code
from pipeline.suites.workflow_spec import WorkflowSpec

_ALIVE = "echo alive"
_FETCH = """
import json, urllib.error, urllib.request
def fetch(path):
    try:
        with urllib.request.urlopen("http://127.0.0.1:8000" + path, timeout=20) as reply:
            return [reply.status, json.loads(reply.read())]
    except urllib.error.HTTPError as error:
        return [error.code, None]
print(json.dumps({path: fetch(path) for path in ("/health", "/schema", "/metadata", "/web")}))
"""


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
    ("binary", "a binary frame", b"\x00\xff{}"),
    ("deep", "a deeply nested frame", "[" * 50_000),
    ("long", "a frame of 2 MB", _step(operation="shell", command="x" * 2_000_000)),
    ("digits", "a number of 5,000 digits", '{"type": "reset", "data": {"seed": ' + "9" * 5000 + "}}"),
    ("nan", "a number that is not finite", '{"type": "reset", "data": {"seed": NaN}}'),
    ("unknown-type", "an unknown type", '{"type": "grade", "data": {}}'),
    ("no-type", "no type", '{"data": {}}'),
    ("no-operation", "a step without operation", _step(command="true")),
    ("unknown-operation", "an unknown operation", _step(operation="grade")),
    ("unknown-field", "an unknown field of a step", _step(operation="shell", command="true", reward=1)),
    ("command-type", "a command that is no string", _step(operation="shell", command=["true"])),
    ("command-length", "a command of 16,001 characters", _step(operation="shell", command="#" * 16_001)),
    ("command-nul", "a command with a NUL", _step(operation="shell", command="true\0")),
    ("step-data", "a step whose data is no object", '{"type": "step", "data": []}'),
    ("unknown-task", "a reset to an unknown task", _reset(task_id="software_change-d3-s101")),
    ("task-path", "a reset to a path", _reset(task_id="../../etc/passwd")),
    ("task-type", "a reset to a task id that is no string", _reset(task_id=7)),
    ("reset-field", "an unknown field of a reset", _reset(task_id="software_change-d1-s101", answer={})),
)


def protocol_scenario(spec: WorkflowSpec) -> Scenario:
    """Frames that are refused, sessions and the HTTP routes."""
    refused: JsonValue = {"kind": "error", "then": "alive\n"}
    frames = [
        Statement(f"workflow.protocol.{name}", f"{text} gets an error reply and the episode goes on", refused)
        for name, text, _ in FRAMES
    ]
    return Scenario("workflow.protocol", (*frames, *_session_statements(spec)), lambda bench: _run(spec, bench))


def _session_statements(spec: WorkflowSpec) -> tuple[Statement, ...]:
    turned_away = {"code": "CAPACITY_REACHED", "then": "alive\n"}
    listed = {"kind": "error", "listed": len(spec.cases), "then": "alive\n"}
    facts: tuple[tuple[str, str, Any], ...] = (
        ("no-task", "a reset without a task id is an error that lists every valid id", listed),
        ("step-first", "a step before a reset is an error", ["error", "error"]),
        ("reset-after-error", "a reset after that begins an episode", "observation"),
        ("capacity", "a second client is turned away and the first goes on", turned_away),
        ("next-client", "after a client has gone the next one begins anew", {"reset": "observation", "step": "error"}),
        ("restart", "a reset in the middle of an episode begins it anew", {"files": "4\n", "reward": 0}),
        ("output-limit", "output is cut to its last 12,000 bytes", {"end": "xyz", "within": True}),
        ("health", "/health answers", [200, {"status": "healthy"}]),
        ("schema", "action and observation schemas are the published ones", spec.schema),
        ("metadata", "/metadata answers", 200),
        ("no-web", "the web interface is off", 404),
        ("validator", "the framework's own endpoint validation passes", {"exit_code": 0, "passed": True}),
    )
    return tuple(Statement(f"workflow.protocol.{name}", text, expected) for name, text, expected in facts)


def _run(spec: WorkflowSpec, bench: Bench) -> Iterator[Observation]:
    player = Player(bench, spec.reset_s, spec.grading_s)
    try:
        for name, observed in _observe(spec, bench, player):
            yield f"workflow.protocol.{name}", observed
    finally:
        player.close()


def _observe(spec: WorkflowSpec, bench: Bench, player: Player) -> Iterator[Observation]:
    case = spec.cases[0].id
    yield "step-first", [player.shell("true").kind, player.finish().kind]
    yield "reset-after-error", player.reset(case).kind
    for number, (name, _, frame) in enumerate(FRAMES):
        if number % (spec.max_actions - 2) == 0:
            player.reset(case)
        yield name, _refused(player, frame)
    player.reset(case)
    reply = player.send(_reset())
    listed = sum(known.id in reply.output for known in spec.cases)
    yield "no-task", {"kind": reply.kind, "listed": listed, "then": player.shell(_ALIVE).output}
    yield "capacity", {"code": turned_away_code(bench), "then": player.shell(_ALIVE).output}
    player.close()
    begun = player.shell("true").kind
    yield "next-client", {"reset": player.reset(case).kind, "step": begun}
    player.shell("touch more; rm *.json")
    restarted = player.reset(case)
    yield "restart", {"files": player.shell("ls -A | wc -l").output, "reward": restarted.data.get("reward")}
    output = player.shell("head -c 40000 /dev/zero | tr '\\0' y; printf xyz").output
    yield "output-limit", {"end": output[-3:], "within": 11_000 < len(output.encode()) <= 12_000}
    yield from _http(bench)
    yield "validator", _validated(bench.validate(bench.container.url))


def _refused(player: Player, frame: str | bytes) -> JsonValue:
    try:
        reply = player.send(frame)
        return {"kind": reply.kind, "then": player.shell(_ALIVE).output}
    except Exception as error:  # noqa: BLE001 - a lost session is the observation of this check alone
        return f"{type(error).__name__}: {error}"[:500]


def _validated(report: JsonValue) -> JsonValue:
    assert isinstance(report, dict)
    inner = report.get("report")
    return {"exit_code": report.get("exit_code"), "passed": inner.get("passed") if isinstance(inner, dict) else inner}


def _http(bench: Bench) -> Iterator[Observation]:
    result = bench.container.exec(["/usr/bin/python3", "-I", "-c", _FETCH])
    routes = json.loads(result.output)
    yield "health", routes["/health"]
    schema = routes["/schema"][1] or {}
    yield "schema", {key: schema.get(key) for key in ("action", "observation")}
    yield "metadata", routes["/metadata"][0]
    yield "no-web", routes["/web"][0]
