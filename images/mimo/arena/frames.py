"""What stands between the socket and the framework, so that no frame of a client can end its own session or the server.

The framework closes a session for a binary frame, a JSON value that is no object, or text that it cannot echo, and it
does not notice that a client has gone while a command runs. Here such frames get an error reply, and a disconnect ends
the running command at once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

MAX_FRAME_BYTES = 1 << 20
_MAX_WAITING_FRAMES = 64
_MESSAGE_TYPES = frozenset({"reset", "step", "state", "close", "mcp"})

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class FrameGuard:
    """An ASGI layer. `on_disconnect` is called as soon as the client of the session that `admit` let in has gone."""

    def __init__(self, app: AsgiApp, on_disconnect: Callable[[], None]) -> None:
        self._app, self._on_disconnect = app, on_disconnect

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Pass HTTP through; guard WebSocket frames."""
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        await _Session(self._app, self._on_disconnect).run(scope, receive, send)


class _Session:
    """One socket: a pump that reads ahead, and the answers to frames that the framework shall not see."""

    def __init__(self, app: AsgiApp, on_disconnect: Callable[[], None]) -> None:
        self._app, self._on_disconnect = app, on_disconnect
        self._waiting: asyncio.Queue[Message] = asyncio.Queue()
        self._replied = self._refused = False

    async def run(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        pump = asyncio.create_task(self._pump(receive))

        async def guarded_send(message: Message) -> None:
            self._note(message)
            await send(message)

        async def guarded_receive() -> Message:
            while True:
                message = await self._waiting.get()
                problem = _problem(message)
                if problem is None:
                    return message
                await send({"type": "websocket.send", "text": _error_reply(*problem)})

        try:
            await self._app(scope, guarded_receive, guarded_send)
        finally:
            pump.cancel()

    async def _pump(self, receive: Receive) -> None:
        while True:
            message = await receive()
            if message["type"] == "websocket.disconnect" or self._waiting.qsize() >= _MAX_WAITING_FRAMES:
                if not self._refused:
                    self._on_disconnect()
                self._waiting.put_nowait({"type": "websocket.disconnect", "code": message.get("code", 1008)})
                return
            self._waiting.put_nowait(message)

    def _note(self, message: Message) -> None:
        """A socket whose first reply is an error of the session's making never held the arena."""
        if message["type"] != "websocket.send" or self._replied:
            return
        self._replied = True
        self._refused = '"CAPACITY_REACHED"' in (message.get("text") or "")


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


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _error_reply(code: str, text: str) -> str:
    return json.dumps({"type": "error", "data": {"message": text, "code": code}})
