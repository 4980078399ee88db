"""HTTP as a hostile agent speaks it: endless bodies, sessions for good, and too many connections."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from arena.connections import MAX_INSIDE, Connection, Socket
from arena.requests import MAX_BODY_BYTES, serve_request

CREATE = {"jsonrpc": "2.0", "id": 7, "method": "openenv/session/create", "params": {}}


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """What the framework would see."""
    message = await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": message["body"]})


def ask(path: str, *chunks: bytes, more: bool = False) -> tuple[int, bytes]:
    """Status and body of the answer; with `more` the client never comes to an end."""
    sent: list[Any] = []
    waiting = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    if not more:
        waiting.append({"type": "http.request", "body": b"", "more_body": False})

    async def receive() -> Any:
        return waiting.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(serve_request(echo, {"type": "http", "path": path}, receive, send))
    return sent[0]["status"], sent[1]["body"]


def test_a_body_comes_whole_up_to_the_limit() -> None:
    assert ask("/step", b"a" * (MAX_BODY_BYTES - 1), b"b") == (200, b"a" * (MAX_BODY_BYTES - 1) + b"b")
    assert ask("/health") == (200, b"")


def test_an_endless_body_is_refused_as_soon_as_it_is_too_long() -> None:
    assert ask("/step", b"a" * MAX_BODY_BYTES, b"b", more=True)[0] == 413


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_no_session_is_created_that_nobody_ends(path: str) -> None:
    status, body = ask(path, json.dumps(CREATE).encode())
    assert (status, json.loads(body)["id"], json.loads(body)["error"]["code"]) == (200, 7, -32000)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/mcp", b'{"jsonrpc": "2.0", "id": 7, "method": "tools/list"}'),
        ("/mcp", b"{"),
        ("/mcp", b"[" * 100_000),
        ("/mcp", b'["openenv/session/create"]'),
        ("/mcp", b""),
        ("/step", json.dumps(CREATE).encode()),
    ],
)
def test_the_framework_answers_the_rest(path: str, body: bytes) -> None:
    assert ask(path, body) == (200, body)


def test_a_client_that_goes_away_in_its_body_gets_nothing() -> None:
    async def gone() -> Any:
        return {"type": "http.disconnect"}

    async def refuse(*_: Any) -> None:
        raise AssertionError("nobody is there")

    asyncio.run(serve_request(refuse, {"type": "http", "path": "/step"}, gone, refuse))


async def accept(scope: Any, receive: Any, send: Any) -> None:
    """A socket that is open and says nothing; a request that is answered."""
    if scope["type"] == "http":
        await echo(scope, receive, send)
        return
    await send({"type": "websocket.accept"})
    while (await receive())["type"] != "websocket.disconnect":
        pass


@pytest.fixture
def port() -> Iterator[int]:
    """Of a server with our connections, on any free port."""
    config = uvicorn.Config(accept, port=0, http=Connection, ws=Socket, lifespan="off", log_level="critical")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.force_exit = server.should_exit = True
    thread.join()


def answers(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        try:
            return client.recv(100).startswith(b"HTTP/1.1 200")
        except ConnectionResetError:
            return False


def test_connections_from_inside_are_few(port: int) -> None:
    held = [socket.create_connection(("127.0.0.1", port), timeout=5) for _ in range(MAX_INSIDE)]
    assert not answers(port)
    for client in held:
        client.close()
    deadline = time.monotonic() + 5
    while not answers(port):
        assert time.monotonic() < deadline


def test_who_pings_and_never_reads_is_cut_off(port: int) -> None:
    key = base64.b64encode(b"k" * 16).decode()
    head = f"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
    pings = (b"\x89\xfd\0\0\0\0" + b"x" * 125) * 1000
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(f"{head}Sec-WebSocket-Version: 13\r\n\r\n".encode())
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            client.sendall(pings * 1000)
