"""The arena's client against a scripted server: replies, error replies, silence, nonsense and sizes."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from pipeline.adapters.arena import MAX_REPLY_BYTES, ArenaReplyError, WebSocketArena, play_framework_episode
from pipeline.errors import HostileInputError, ServiceError

OBSERVATION = {"observation": {"output": "x"}, "reward": 0.0, "done": False}


def answer(frame: Any) -> Any:
    """What the server does with a frame: a reply, None for silence, or an exception type to close."""
    text = frame if isinstance(frame, str) else "binary"
    if "slow" in text:
        time.sleep(0.4)
        return json.dumps({"type": "observation", "data": {"late": True}})
    if "nonsense" in text:
        return "no json"
    if "list" in text:
        return "[]"
    if "huge" in text:
        return json.dumps({"type": "observation", "data": {"x": "y" * MAX_REPLY_BYTES}})
    if "refuse" in text:
        return json.dumps({"type": "error", "data": {"message": "no", "code": "EXECUTION_ERROR"}})
    if text == "binary":
        return json.dumps({"type": "error", "data": {"message": "binary", "code": "INVALID_JSON"}})
    return json.dumps({"type": "observation", "data": OBSERVATION | {"asked": json.loads(text)}})


def handle(socket: ServerConnection) -> None:
    try:
        for frame in socket:
            socket.send(answer(frame))
    except ConnectionClosed:
        return


@contextmanager
def served(handler: Any) -> Iterator[WebSocketArena]:
    with serve(handler, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        arena = WebSocketArena(f"http://127.0.0.1:{server.socket.getsockname()[1]}", reply_timeout_s=5)
        try:
            yield arena
        finally:
            arena.close()
            server.shutdown()
            thread.join()


@pytest.fixture
def arena() -> Iterator[WebSocketArena]:
    with served(handle) as arena:
        yield arena


def test_frames_are_as_consumers_send_them(arena: WebSocketArena) -> None:
    assert arena.reset()["asked"] == {"type": "reset", "data": {}}
    assert arena.reset("task", 3)["asked"] == {"type": "reset", "data": {"task_id": "task", "seed": 3}}
    assert arena.shell("ls")["asked"] == {"type": "step", "data": {"operation": "shell", "command": "ls"}}
    assert arena.finish()["asked"] == {"type": "step", "data": {"operation": "finish"}}


def test_an_error_reply_raises_and_the_session_goes_on(arena: WebSocketArena) -> None:
    with pytest.raises(ArenaReplyError, match="EXECUTION_ERROR: no") as caught:
        arena.shell("refuse")
    assert caught.value.code == "EXECUTION_ERROR"
    assert arena.shell("ls")["reward"] == 0.0


def test_raw_exchanges_do_not_raise_for_error_replies(arena: WebSocketArena) -> None:
    assert arena.exchange(b"\x00")["type"] == "error"


def test_after_a_time_out_no_reply_is_taken_for_the_next_one(arena: WebSocketArena) -> None:
    with pytest.raises(ServiceError, match="no reply"):
        arena.exchange('"slow"', timeout_s=0.1)
    assert "late" not in arena.shell("ls")


@pytest.mark.parametrize(("frame", "error"), [("nonsense", HostileInputError), ("list", HostileInputError)])
def test_nonsense_is_refused(arena: WebSocketArena, frame: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        arena.exchange(f'"{frame}"')
    assert arena.shell("ls")["done"] is False


def test_a_reply_above_the_limit_ends_the_session_only(arena: WebSocketArena) -> None:
    with pytest.raises(ServiceError):
        arena.exchange('"huge"')
    assert arena.shell("ls")["done"] is False


def test_a_server_that_turns_away_is_heard() -> None:
    def turn_away(socket: ServerConnection) -> None:
        socket.send(json.dumps({"type": "error", "data": {"code": "CAPACITY_REACHED"}}))
        socket.close()

    with served(turn_away) as arena:
        for _ in range(20):
            with pytest.raises(ArenaReplyError, match="CAPACITY_REACHED"):
                arena.reset()
            arena.close()


def test_nobody_there() -> None:
    with pytest.raises(ServiceError, match="no reply"):
        WebSocketArena("http://127.0.0.1:9").reset()


@pytest.mark.parametrize("size_bytes", [1, 2 << 20])
def test_the_last_words_of_a_closed_session_are_heard(size_bytes: int) -> None:
    """The server says why and closes; the client's next frame meets a closed socket."""
    closed = threading.Event()

    def say_why_and_close(socket: ServerConnection) -> None:
        socket.send(answer(socket.recv()))
        socket.send(json.dumps({"type": "error", "data": {"code": "SESSION_ERROR"}}))
        socket.close()
        closed.set()

    with served(say_why_and_close) as arena:
        assert arena.shell("ls")["done"] is False
        assert closed.wait(5)
        assert arena.exchange("x" * size_bytes)["data"] == {"code": "SESSION_ERROR"}
        with pytest.raises(ServiceError, match="closed by the server with 1000"):
            arena.exchange("{}")
        assert arena.shell("ls")["done"] is False


@pytest.mark.parametrize(("task_id", "data"), [(None, {}), ("case-1", {"task_id": "case-1"})])
def test_the_frameworks_client_plays_the_task_that_is_named(task_id: str | None, data: dict[str, str]) -> None:
    frames: list[Any] = []

    def note(socket: ServerConnection) -> None:
        for frame in socket:
            frames.append(json.loads(frame))
            if frames[-1]["type"] != "close":
                done = frames[-1]["data"].get("operation") == "finish"
                socket.send(json.dumps({"type": "observation", "data": OBSERVATION | {"done": done}}))

    with serve(note, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.socket.getsockname()[1]}"
            assert play_framework_episode(url, task_id) == {"reset": 0.0, "output": "x", "done": True}
        finally:
            server.shutdown()
            thread.join()
    assert frames[0] == {"type": "reset", "data": data}
