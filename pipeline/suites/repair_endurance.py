"""What a server is like after very many hostile sessions, and how it stops."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from time import sleep

from pydantic import JsonValue

from pipeline.suites.repair_spec import GRADING_S, RESET_S, Facts, RepairSpec, inspect, make_scenario
from pipeline.suites.scenario import Bench, Observation, Scenario
from pipeline.suites.workflow_player import Player

SESSIONS = 1000
_GROWTH = 1.05
_STOP_S, _BEGINS_S = 2.0, 0.5

_FRAMES = (
    json.dumps({"type": "reset", "data": {}}),
    '{"type": "step", "data": {"operation": "shell", "command": "sleep 300 & yes | head -c 100000"}}',
    "[[[",
    b"\x00\x01",
    json.dumps({"type": "reset", "data": {"task_id": "nothing"}}),
    '{"type": "step", "data": {"operation": "shell", "command": "exit 3", "more": "\\ud800"}}',
)


def endurance_scenario(spec: RepairSpec, sessions: int = SESSIONS) -> Scenario:
    """Many sessions, each hostile in one of several ways and most of them left without a goodbye."""
    facts: Facts = (
        ("processes", f"after {sessions} hostile sessions no process is left", True),
        ("descriptors", f"after {sessions} hostile sessions no descriptor is left open", True),
        ("threads", f"after {sessions} hostile sessions no thread is left", True),
        ("memory", f"after {sessions} hostile sessions memory has grown by at most 5 %", True),
        ("next", f"after {sessions} hostile sessions the next one is served", 0.0),
        ("stop", f"the stop signal ends the server within {_STOP_S:g} s, in the middle of a command", True),
    )

    def observe(spec: RepairSpec, bench: Bench, player: Player) -> Iterator[Observation]:
        _play_many(bench, sessions // 10)
        before = _settled(bench, player)
        _play_many(bench, sessions)
        after = _settled(bench, player)
        for name in ("processes", "descriptors", "threads"):
            yield name, after[name] <= before[name]
        yield "memory", after["memory"] <= before["memory"] * _GROWTH
        yield "next", player.reset().data.get("reward")
        player.close()
        yield "stop", _stopped_in_command(bench)

    return make_scenario(spec, "endurance", facts, observe, alone=True)


def _play_many(bench: Bench, sessions: int) -> None:
    for number in range(sessions):
        arena = bench.open_arena()
        try:
            arena.exchange(_FRAMES[0], 120)
            arena.exchange(_FRAMES[number % len(_FRAMES)], 30)
        except Exception:  # noqa: BLE001, S112 - a refused session is one of the hostile ones
            continue
        finally:
            arena.close()


def _settled(bench: Bench, player: Player) -> dict[str, int]:
    """Figures of the server with one idle session open."""
    player.reset()
    player.shell("true")
    facts = inspect(bench, "server")
    assert isinstance(facts, dict)
    return {name: int(str(value)) for name, value in facts.items()}


def _stopped_in_command(bench: Bench) -> JsonValue:
    player = Player(bench, RESET_S, GRADING_S)
    player.reset()
    with ThreadPoolExecutor(1) as pool:
        # its reply never comes: the socket ends with the server
        pool.submit(player.send, '{"type": "step", "data": {"operation": "shell", "command": "sleep 50"}}')
        sleep(_BEGINS_S)
        return bench.container.stop(10) <= _STOP_S
