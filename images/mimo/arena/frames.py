"""What stands between the socket and the framework, so that no frame of a client can end its own session or the server.

The framework closes a session for a binary frame, a JSON value that is no object, or text that it cannot echo, and it
does not notice that a client has gone while a command runs. Here such frames get an error reply, and a disconnect ends
the running command at once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, MutableMapping
from typing import Any

from arena.requests import AsgiApp, Message, Receive, Send, serve_request

MAX_FRAME_BYTES = 1 << 20
_MAX_WAITING_FRAMES = 64
_MESSAGE_TYPES = frozenset({"reset", "step", "state", "close", "mcp"})


class FrameGuard:
    """An ASGI layer. `on_disconnect` is called as soon as the client that has the session is gone."""

    def __init__(self, app: AsgiApp, on_disconnect: Callable[[], None]) -> None:
        self._app, self._on_disconnect = app, on_disconnect

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Guard requests and WebSocket frames."""
        if scope["type"] == "http":
            await serve_request(self._app, scope, receive, send)
            return
        await _Session(self._app, self._on_disconnect).run(scope, receive, send)


class _Session:
    """One socket: a pump that reads ahead, and the answers to frames that the framework shall not see."""

    def __init__(self, app: AsgiApp, on_disconnect: Callable[[], None]) -> None:
        self._app, self._on_disconnect = app, on_disconnect
        self._waiting: asyncio.Queue[Message] = asyncio.Queue()
        self._asked = 0

    async def run(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve the socket to its end."""
        pump = asyncio.create_task(self._pump(receive))

        async def guarded_receive() -> Message:
            self._asked += 1
            while True:
                message = await self._waiting.get()
                problem = _problem(message)
                if problem is None:
                    if _says_goodbye(message):
                        self._leave()
                    return message
                await send({"type": "websocket.send", "text": _error_reply(*problem)})

        async def guarded_send(message: Message) -> None:
            if message["type"] == "websocket.close":
                # From here on another socket may have the session.
                self._asked = 0
            await send(message)

        try:
            await self._app(scope, guarded_receive, guarded_send)
        finally:
            pump.cancel()

    async def _pump(self, receive: Receive) -> None:
        while True:
            message = await receive()
            if message["type"] == "websocket.disconnect" or self._waiting.qsize() >= _MAX_WAITING_FRAMES:
                self._leave()
                self._drop_frames()
                self._waiting.put_nowait({"type": "websocket.disconnect", "code": message.get("code", 1008)})
                return
            self._waiting.put_nowait(_bounded(message))

    def _drop_frames(self) -> None:
        """Nobody waits for answers any more; only a handshake that the framework has not seen stays."""
        messages = [self._waiting.get_nowait() for _ in range(self._waiting.qsize())]
        for message in messages:
            if message["type"] == "websocket.connect":
                self._waiting.put_nowait(message)

    def _leave(self) -> None:
        # The framework asks for a second message, the first frame, only once this socket has got the session: a client
        # that was turned away must not end the command of the one that is there.
        if self._asked > 1:
            self._asked = 0
            self._on_disconnect()


def _bounded(message: Message) -> Message:
    """Of a frame that will be refused only as much as it takes to see why: many may wait."""
    text = message.get("text")
    return message if text is None or len(text) <= MAX_FRAME_BYTES else {**message, "text": text[: MAX_FRAME_BYTES + 1]}


def _problem(message: Message) -> tuple[str, str] | None:
    """Code and text of what is wrong with a frame; None when the framework may have it."""
    if message["type"] != "websocket.receive":
        return None
    text = message.get("text")
    if text is None:
        return "INVALID_JSON", "frames must be text, this one is binary"
    if len(text) > MAX_FRAME_BYTES:
        return "VALIDATION_ERROR", f"a frame holds at most {MAX_FRAME_BYTES} characters"
    try:
        frame = json.loads(text, parse_constant=_refuse_constant)
        json.dumps(frame, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        return "INVALID_JSON", f"Invalid JSON: {str(error)[:200]}"
    if not isinstance(frame, dict):
        return "VALIDATION_ERROR", "a frame must be a JSON object"
    kind = frame.get("type")
    if not isinstance(kind, str) or kind not in _MESSAGE_TYPES:
        return "UNKNOWN_TYPE", f"Unknown message type: {str(kind)[:100]}"
    return None


def _says_goodbye(message: Message) -> bool:
    text = message.get("text")
    return message["type"] == "websocket.receive" and text is not None and json.loads(text)["type"] == "close"


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _error_reply(code: str, text: str) -> str:
    return json.dumps({"type": "error", "data": {"message": text, "code": code}})
