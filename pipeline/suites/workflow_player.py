"""Plays episodes for the workflow suite. An error reply is an observation here, never an exception.

Raw frames are used throughout, so that one refused or stuck request is the result of one check and the next check goes
on, on a new socket where the old one can no longer be trusted to be in step.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from pipeline.errors import ServiceError
from pipeline.ports import Arena
from pipeline.suites.scenario import Bench

ACTION_S = 70.0
_OPENINGS, _PAUSE_S = 50, 0.05
_BUSY_S, _LOST = 30.0, 3
_STATE = '{"type": "state"}'


@dataclass(frozen=True)
class Reply:
    """One reply of the server, by its raw form."""

    raw: Mapping[str, JsonValue]
    data: Mapping[str, JsonValue] = field(init=False)
    observation: Mapping[str, JsonValue] = field(init=False)

    def __post_init__(self) -> None:
        data = self.raw.get("data")
        data = data if isinstance(data, dict) else {}
        observation = data.get("observation")
        object.__setattr__(self, "data", data)
        object.__setattr__(self, "observation", observation if isinstance(observation, dict) else {})

    @property
    def kind(self) -> JsonValue:
        """`observation`, `error`, `state`."""
        return self.raw.get("type")

    @property
    def output(self) -> str:
        """The observation's output, or the error's message."""
        return str(self.observation.get("output", self.data.get("message", "")))

    @property
    def reward(self) -> JsonValue:
        """The terminal reward; text for anything that is not a terminal observation."""
        if self.kind == "observation" and self.data.get("done") is True:
            return self.data.get("reward")
        return f"no terminal reply: {self.kind}: {self.output}"[:500]


class Player:
    """One arena at a time; close it when the scenario ends."""

    def __init__(self, bench: Bench, reset_s: float, grading_s: float) -> None:
        self._bench, self._reset_s, self._grading_s = bench, reset_s, grading_s
        self._arena: Arena | None = None

    def send(self, frame: Mapping[str, JsonValue] | str | bytes, timeout_s: float = ACTION_S) -> Reply:
        """Any frame. A time-out or a closed socket raises, and the next frame opens a new socket."""
        raw = frame if isinstance(frame, (str, bytes)) else json.dumps(frame)
        if self._arena is None:
            self._arena = open_session(self._bench)
        try:
            return Reply(self._arena.exchange(raw, timeout_s))
        except Exception:
            self.close()
            raise

    def reset(self, task_id: str | None = None, seed: int | None = None) -> Reply:
        """Begin an episode."""
        data: dict[str, JsonValue] = {"seed": seed} if seed is not None else {}
        if task_id is not None:
            data["task_id"] = task_id
        for _ in range(_OPENINGS):
            fresh = self._arena is None
            reply = self.send({"type": "reset", "data": data}, self._reset_s)
            if not (fresh and reply.kind == "error"):
                break
            # A client that has just gone may still hold the arena.
            self.close()
            time.sleep(_PAUSE_S)
        return reply

    def shell(self, command: str) -> Reply:
        """One shell action."""
        return self.send({"type": "step", "data": {"operation": "shell", "command": command}})

    def finish(self) -> Reply:
        """Grade."""
        return self.send({"type": "step", "data": {"operation": "finish"}}, self._grading_s)

    def score(self, task_id: str, *commands: str, must_succeed: bool = True) -> JsonValue:
        """Reward of an episode with these actions; text when it has none, so that only the check that asked fails."""
        try:
            begun = self.reset(task_id)
            if begun.kind != "observation":
                return f"reset: {begun.output}"[:500]
            for command in commands:
                reply = self.shell(command)
                if must_succeed and reply.observation.get("exit_code") != 0:
                    return f"an action failed: {reply.output}"[:500]
            return self.finish().reward
        except Exception as error:  # noqa: BLE001 - a stuck or lost session is what this check observes
            return f"{type(error).__name__}: {error}"[:500]

    def close(self) -> None:
        """Close the socket, if one is open."""
        if self._arena is not None:
            arena, self._arena = self._arena, None
            arena.close()


def open_session(bench: Bench) -> Arena:
    """A socket whose session the server has accepted: the client before may still be leaving the only one.

    Tried again for as long as the server turns it away, at most 30 s, then ServiceError; and a few times when a socket
    is closed without a word, since a server that turns away may do so before its reply can be read.
    """
    deadline, lost = time.monotonic() + _BUSY_S, 0
    while True:
        try:
            code, arena = _code_of(bench)
        except Exception:
            lost += 1
            if lost == _LOST:
                raise
        else:
            if code != "CAPACITY_REACHED":
                return arena
            arena.close()
            if time.monotonic() > deadline:
                raise ServiceError(f"the server turned every client away for {_BUSY_S:g} s", where=bench.container.url)
        time.sleep(_PAUSE_S)


def turned_away_code(bench: Bench) -> JsonValue:
    """The code that a client beside the one in session gets; text when no reply comes at all."""
    failure = ""
    for _ in range(_LOST):
        try:
            code, arena = _code_of(bench)
        except Exception as error:  # noqa: BLE001 - what went wrong is the observation, if it stays so
            failure = f"{type(error).__name__}: {error}"[:500]
        else:
            arena.close()
            return code
    return failure


def play_framework(bench: Bench, task_id: str | None = None) -> JsonValue:
    """An episode by the framework's own client, tried again while the client before is still leaving."""
    deadline, failure = time.monotonic() + _BUSY_S, ""
    for _ in range(_OPENINGS):
        try:
            return bench.play_framework(bench.container.url, task_id)
        except Exception as error:  # noqa: BLE001 - what went wrong is the observation, if it stays so
            failure = f"{type(error).__name__}: {error}"[:500]
        if time.monotonic() > deadline:
            break
        time.sleep(_PAUSE_S)
    return failure


def _code_of(bench: Bench) -> tuple[JsonValue, Arena]:
    """The error code that a new client's state request gets, None for a state; and its socket."""
    arena = bench.open_arena()
    try:
        data = arena.exchange(_STATE, 20).get("data")
    except Exception:
        arena.close()
        raise
    return data.get("code") if isinstance(data, dict) else None, arena


def write_file(data: bytes, name: str = "answer.json") -> str:
    """A command that makes `name` hold exactly `data` (at most 11,000 bytes)."""
    return f"base64 -d > {name} <<'DATA'\n{base64.b64encode(data).decode()}\nDATA"


def dump(value: JsonValue) -> bytes:
    """Compact JSON bytes."""
    return json.dumps(value, separators=(",", ":")).encode()
