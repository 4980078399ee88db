"""An environment server seen from outside: one WebSocket, and the framework's own validator.

Limits: a reply is at most MAX_REPLY_BYTES; every exchange has a time. After a time-out the next reply would belong to
the request before, so the socket is closed, and the next exchange opens a new one (whose episode is a new one, too).
"""

from __future__ import annotations

import contextlib
import json
import logging
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import JsonValue
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import ClientConnection, connect

from pipeline.errors import HostileInputError, PipelineError, ServiceError

MAX_REPLY_BYTES = 4 << 20
OPEN_TIMEOUT_S = 10.0
REPLY_TIMEOUT_S = 130.0
VALIDATOR_TIMEOUT_S = 120.0
_MAX_VALIDATOR_BYTES = 1 << 20
# a connection that breaks reaches the caller as an error: the library need not print it as well
_SILENT = logging.Logger("arena", logging.CRITICAL + 1)


class ArenaReplyError(PipelineError):
    """The server answered with an error reply; `code` and `data` are its own."""

    def __init__(self, data: Mapping[str, JsonValue], where: str) -> None:
        self.code, self.data = str(data.get("code", "")), dict(data)
        super().__init__(f"the environment answered {self.code}: {str(data.get('message', ''))[:500]}", where=where)


class WebSocketArena:
    """Implements ports.Arena. Not for several threads at once."""

    def __init__(self, url: str, reply_timeout_s: float = REPLY_TIMEOUT_S) -> None:
        """`url` is http://host:port of the server; nothing is opened yet."""
        self._url = url.replace("http", "ws", 1).rstrip("/") + "/ws"
        self._reply_timeout_s = reply_timeout_s
        self._socket: ClientConnection | None = None
        self._closing = contextlib.ExitStack()

    def reset(self, task_id: str | None = None, seed: int | None = None) -> Mapping[str, JsonValue]:
        """`data` of the reply; ArenaReplyError for an error reply."""
        data: dict[str, JsonValue] = {}
        if task_id is not None:
            data["task_id"] = task_id
        if seed is not None:
            data["seed"] = seed
        return self._request("reset", data)

    def shell(self, command: str) -> Mapping[str, JsonValue]:
        """`data` of one shell action's reply."""
        return self._request("step", {"operation": "shell", "command": command})

    def finish(self) -> Mapping[str, JsonValue]:
        """`data` of the terminal reply."""
        return self._request("step", {"operation": "finish"})

    def exchange(self, frame: str | bytes, timeout_s: float = REPLY_TIMEOUT_S) -> Mapping[str, JsonValue]:
        """Send any frame and return the raw reply; ServiceError when there is none, and the socket is closed then."""
        try:
            socket = self._open()
            # A server that turns a client away answers before the frame is out, and closes: its reply is waiting.
            with contextlib.suppress(ConnectionClosed):
                socket.send(frame)
            reply = socket.recv(timeout=timeout_s)
        except (TimeoutError, OSError, WebSocketException) as error:
            self.close()
            raise ServiceError(f"no reply: {_reason(error)}", where=self._url) from error
        return self._parsed(reply)

    def send(self, frame: str | bytes) -> None:
        """Send without waiting for a reply, for a client that then goes away."""
        try:
            self._open().send(frame)
        except (OSError, WebSocketException) as error:
            self.close()
            raise ServiceError(f"could not send: {_reason(error)}", where=self._url) from error

    def close(self) -> None:
        """Close the socket, when there is one. A later exchange opens another."""
        self._socket = None
        with contextlib.suppress(OSError, WebSocketException):
            self._closing.close()

    def _request(self, kind: str, data: dict[str, JsonValue]) -> Mapping[str, JsonValue]:
        reply = self.exchange(json.dumps({"type": kind, "data": data}), self._reply_timeout_s)
        body = reply.get("data")
        if not isinstance(body, dict):
            raise HostileInputError("a reply without data", where=self._url)
        if reply.get("type") != "observation":
            raise ArenaReplyError(body, self._url)
        return body

    def _open(self) -> ClientConnection:
        if self._socket is None:
            opening = connect(
                self._url,
                open_timeout=OPEN_TIMEOUT_S,
                close_timeout=2,
                max_size=MAX_REPLY_BYTES,
                compression=None,
                proxy=None,
                logger=_SILENT,
            )
            self._socket = self._closing.enter_context(opening)
        return self._socket

    def _parsed(self, reply: str | bytes) -> Mapping[str, JsonValue]:
        try:
            value = json.loads(reply)
        except (ValueError, RecursionError) as error:
            self.close()
            raise HostileInputError("a reply that is not JSON", where=self._url) from error
        if not isinstance(value, dict):
            raise HostileInputError("a reply that is no object", where=self._url)
        return value


def open_arena(url: str) -> WebSocketArena:
    """A client of its own for the server at `url`."""
    return WebSocketArena(url)


def validate_endpoint(url: str) -> JsonValue:
    """What `openenv validate --url` of this interpreter's environment reports; ServiceError when it cannot run."""
    command = [str(Path(sys.executable).with_name("openenv")), "validate", "--url", url, "--json"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=VALIDATOR_TIMEOUT_S, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServiceError(f"the framework's validator did not run: {error}", where=url) from error
    return {"exit_code": done.returncode, "report": _report(done.stdout[:_MAX_VALIDATOR_BYTES])}


def _report(output: bytes) -> Any:
    text = output.decode("utf-8", "replace")
    start = text.find("{")
    try:
        return json.loads(text[start:]) if start >= 0 else text
    except ValueError:
        return text


def _reason(error: Exception) -> str:
    if isinstance(error, ConnectionClosed) and error.rcvd is not None:
        return f"closed by the server with {error.rcvd.code}"
    return f"{type(error).__name__}: {error}"[:300]


def play_framework_episode(url: str, task_id: str | None = None) -> JsonValue:
    """One episode by the framework's own Python client: the reset's reward, one action's output, and the end.

    An image of several tasks needs a task id. Whatever the client raises passes through.
    """
    from openenv.core.generic_client import GenericEnvClient

    with GenericEnvClient(base_url=url, message_timeout_s=REPLY_TIMEOUT_S).sync() as client:
        begun = client.reset() if task_id is None else client.reset(task_id=task_id)
        acted = client.step({"operation": "shell", "command": "echo here"})
        ended = client.step({"operation": "finish"})
        return {"reset": begun.reward, "output": acted.observation["output"], "done": ended.done}
