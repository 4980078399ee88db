"""What stands between HTTP and the framework: the agent reaches these routes, too.

The framework reads a body of any size into memory, and a session that HTTP creates would hold the only slot until
somebody closes it. Here a body is bounded, and sessions belong to WebSockets, which end with their client.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

MAX_BODY_BYTES = 1 << 18
_CREATE_SESSION = "openenv/session/create"
_SERVER_ERROR = -32_000

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


async def serve_request(app: AsgiApp, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
    """Answer a request that the framework shall not see; give it the others, their body read."""
    body = await _read_body(receive)
    if body is None:
        return
    if len(body) > MAX_BODY_BYTES:
        await _reply(send, 413, {"detail": f"a body holds at most {MAX_BODY_BYTES} bytes"})
    elif scope["path"].rstrip("/") == "/mcp" and (request := _session_request(body)) is not None:
        error = {"code": _SERVER_ERROR, "message": "a session is opened by a WebSocket, and ends with it"}
        await _reply(send, 200, {"jsonrpc": "2.0", "id": request.get("id"), "error": error})
    else:
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return waiting.pop() if waiting else await receive()

        await app(scope, replay, send)


async def _read_body(receive: Receive) -> bytes | None:
    """At most one chunk more than allowed; None when the client has gone."""
    body = b""
    while len(body) <= MAX_BODY_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            break
    return body


def _session_request(body: bytes) -> dict[str, Any] | None:
    """The request for a session, read as the framework reads it."""
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return request if isinstance(request, dict) and request.get("method") == _CREATE_SESSION else None


async def _reply(send: Send, status: int, value: object) -> None:
    data = json.dumps(value).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(data)),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data})
