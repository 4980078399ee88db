"""Sessions of the suites: a client waits until the one before has left, and what stays wrong is one observation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest

from pipeline.errors import ServiceError
from pipeline.suites import workflow_player
from pipeline.suites.scenario import Bench
from pipeline.suites.workflow_player import Player, open_session, play_framework, turned_away_code

BUSY = {"type": "error", "data": {"code": "CAPACITY_REACHED"}}


class ScriptedServer:
    """Sockets answer their first frame as scripted, one after the other; the last answer stays. None: closed."""

    url = "http://fake"

    def __init__(self, *answers: Mapping[str, Any] | None) -> None:
        self.answers, self.opened, self.closed, self.frames = list(answers), 0, 0, list[str]()

    def open(self) -> ScriptedSocket:
        self.opened += 1
        return ScriptedSocket(self, self.answers[min(self.opened, len(self.answers)) - 1])

    def bench(self, *failures: Exception) -> Bench:
        left = list(failures)

        def play(url: str, task_id: str | None = None) -> Any:
            if left:
                raise left.pop()
            return [url, task_id]

        unused = cast(Any, None)
        return Bench(cast(Any, self), cast(Any, self.open), unused, unused, play_framework=play)


class ScriptedSocket:
    def __init__(self, server: ScriptedServer, answer: Mapping[str, Any] | None) -> None:
        self.server, self.answer = server, answer

    def exchange(self, frame: str, timeout_s: float = 0) -> Mapping[str, Any]:
        self.server.frames.append(json.loads(frame)["type"])
        if self.answer is None:
            raise ServiceError("no reply: closed by the server with 1000")
        return self.answer

    def close(self) -> None:
        self.server.closed += 1


STATE = {"type": "state", "data": {"step_count": 0}}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workflow_player, "_PAUSE_S", 0.001)


@pytest.mark.parametrize("before", [(), (BUSY,), (BUSY,) * 200, (None,), (BUSY, None, BUSY, None, BUSY)])
def test_a_session_opens_once_the_one_before_has_left(before: tuple[Any, ...]) -> None:
    server = ScriptedServer(*before, STATE)
    socket = cast(ScriptedSocket, open_session(server.bench()))
    assert socket.answer is STATE
    assert (server.opened, server.closed) == (len(before) + 1, len(before))


def test_a_player_asks_in_the_session_that_it_was_given() -> None:
    server = ScriptedServer(BUSY, None, STATE)
    player = Player(server.bench(), 1, 1)
    player.shell("true")
    player.shell("true")
    assert server.frames == ["state", "state", "state", "step", "step"]
    player.close()
    assert server.closed == server.opened == 3


def test_a_server_that_turns_everybody_away_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workflow_player, "_BUSY_S", 0.05)
    server = ScriptedServer(BUSY)
    with pytest.raises(ServiceError, match="turned every client away"):
        open_session(server.bench())
    assert server.closed == server.opened > 1


def test_a_server_that_closes_every_socket_is_given_up_soon() -> None:
    server = ScriptedServer(None)
    with pytest.raises(ServiceError, match="closed by the server"):
        open_session(server.bench())
    assert server.closed == server.opened == 3


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ((BUSY,), "CAPACITY_REACHED"),
        ((None, BUSY), "CAPACITY_REACHED"),
        ((STATE,), None),
        ((None,), "ServiceError: no reply: closed by the server with 1000"),
    ],
)
def test_what_a_second_client_is_told(answers: tuple[Any, ...], code: str | None) -> None:
    server = ScriptedServer(*answers)
    assert turned_away_code(server.bench()) == code
    assert server.closed == server.opened


def test_the_frameworks_client_is_tried_again_while_it_is_turned_away() -> None:
    bench = ScriptedServer(STATE).bench(*[RuntimeError("turned away")] * 3)
    assert play_framework(bench, "case-1") == ["http://fake", "case-1"]
    assert play_framework(bench) == ["http://fake", None]


def test_a_framework_client_that_cannot_play_is_one_observation() -> None:
    assert play_framework(ScriptedServer(STATE).bench(*[RuntimeError("no")] * 500)) == "RuntimeError: no"
