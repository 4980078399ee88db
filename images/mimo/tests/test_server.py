"""The framework's application behind the frame guard, in this process and as a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from arena import frames
from arena.frames import FrameGuard
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

PORT = 5859
REPOSITORY = Path(__file__).resolve().parents[3]
PROGRAM = """
import sys
sys.path[:0] = [sys.argv[1], sys.argv[2]]
from arena import absent
absent.install()
from test_episode import Stage, arena_of
from arena.processes import Reaper
from arena.server import serve

class Slow(Stage):
    reaper = Reaper()
    def run(self, command=""):
        import time
        self.gone = False
        for _ in range(int(float(command) * 100) if command[:1].isdigit() else 0):
            time.sleep(0.01)
            if self.gone:
                raise RuntimeError("ended")
        return Stage.run(self, command)
    def abort(self):
        self.gone = True

serve(arena_of(Slow(max_actions=50)), "only", int(sys.argv[3]), "127.0.0.1")
"""


@pytest.fixture
def server() -> Iterator[subprocess.Popen[bytes]]:
    folders = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, *folders, str(PORT)])
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            fetch("/health")
            break
        except OSError:
            time.sleep(0.05)
    yield process
    process.kill()
    process.wait()


def fetch(path: str) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}{path}", timeout=5) as reply:
        return json.load(reply)


def ask(socket: Any, frame: Any) -> dict[str, Any]:
    # A client that is turned away has its reply before it could send.
    with contextlib.suppress(ConnectionClosed):
        socket.send(frame if isinstance(frame, (str, bytes)) else json.dumps(frame))
    return dict(json.loads(socket.recv(timeout=10)))


REFUSED: tuple[str | bytes, ...] = (
    "{",
    "[]",
    "null",
    b"{}",
    '{"type": ["a"]}',
    '{"type": "step", "data": NaN}',
    "[" * 100_000,
    '{"type": "step", "data": {"operation": "shell", "command": "\\ud800"}}',
    "x" * 2_000_000,
)
RESET = {"type": "reset", "data": {}}


def step(command: str) -> dict[str, Any]:
    return {"type": "step", "data": {"operation": "shell", "command": command}}


def test_the_server_keeps_the_contract(server: subprocess.Popen[bytes]) -> None:
    schema = fetch("/schema")
    published = json.loads((REPOSITORY / "policies" / "openenv-schema.json").read_text())
    assert {"action": schema["action"], "observation": schema["observation"]} == published
    url = f"ws://127.0.0.1:{PORT}/ws"
    with connect(url) as socket:
        assert ask(socket, RESET)["data"]["observation"]["output"] == "do only"
        for frame in REFUSED:
            assert ask(socket, frame)["type"] == "error"
        assert ask(socket, step("here"))["data"]["observation"]["output"] == "ran here"
        with connect(url) as second:
            assert json.loads(second.recv(timeout=5))["data"]["code"] == "CAPACITY_REACHED"
        socket.send(json.dumps(step("1.0")))
        assert fetch("/state")["step_count"] == 0
        assert json.loads(socket.recv(timeout=5))["data"]["done"] is False
        socket.send(json.dumps(step("30")))
        time.sleep(0.2)
    begun = time.monotonic()
    while True:
        with connect(url) as socket:
            if ask(socket, RESET)["type"] == "observation":
                break
        time.sleep(0.05)
    assert time.monotonic() - begun < 2


def test_the_stop_signal_ends_it_in_the_middle_of_a_command(server: subprocess.Popen[bytes]) -> None:
    with connect(f"ws://127.0.0.1:{PORT}/ws") as socket:
        ask(socket, RESET)
        socket.send(json.dumps(step("30")))
        time.sleep(0.2)
        begun = time.monotonic()
        os.kill(server.pid, signal.SIGTERM)
        assert server.wait(timeout=5) == 0
        assert time.monotonic() - begun < 2


class Wire:
    """An ASGI connection: what the client sends, and what it got."""

    def __init__(self, *texts: str) -> None:
        self.incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        for message in ({"type": "websocket.connect"}, *({"type": "websocket.receive", "text": t} for t in texts)):
            self.incoming.put_nowait(message)
        self.sent: list[Any] = []

    def hang_up(self) -> None:
        self.incoming.put_nowait({"type": "websocket.disconnect", "code": 1006})

    async def send(self, message: Any) -> None:
        self.sent.append(message)


def play(wire: Wire, application: Any) -> list[str]:
    left: list[str] = []
    guard = FrameGuard(application, lambda: left.append("left"))
    asyncio.run(asyncio.wait_for(guard({"type": "websocket"}, wire.incoming.get, wire.send), 5))
    return left


def test_a_client_that_hangs_up_in_a_command_is_noticed_and_its_other_frames_are_dropped() -> None:
    wire, seen = Wire('{"type": "step"}', '{"type": "state"}', '{"type": "reset"}'), []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        seen.append((await receive())["text"])
        wire.hang_up()
        await asyncio.sleep(0.05)
        seen.append((await receive())["type"])

    assert play(wire, application) == ["left"]
    assert seen == ['{"type": "step"}', "websocket.disconnect"]


def test_a_client_that_was_turned_away_ends_nothing() -> None:
    wire = Wire()

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        wire.hang_up()
        await asyncio.sleep(0.05)

    assert play(wire, application) == []


def test_a_goodbye_is_said_once() -> None:
    wire = Wire('{"type": "close"}')

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await receive()
        wire.hang_up()
        await asyncio.sleep(0.05)

    assert play(wire, application) == ["left"]


def test_a_client_that_sends_without_end_is_cut_off() -> None:
    wire = Wire('{"type": "state"}')

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await receive()
        for _ in range(frames._MAX_WAITING_FRAMES + 5):
            wire.incoming.put_nowait({"type": "websocket.receive", "text": '{"type": "state"}'})
        await asyncio.sleep(0.05)
        assert (await receive())["type"] == "websocket.disconnect"

    assert play(wire, application) == ["left"]


def test_a_handshake_that_was_not_seen_yet_survives_a_hang_up() -> None:
    wire, seen = Wire('{"type": "state"}'), []
    wire.hang_up()

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(0.05)
        seen.extend([(await receive())["type"], (await receive())["type"]])

    assert play(wire, application) == []
    assert seen == ["websocket.connect", "websocket.disconnect"]
