"""Connections that an agent opens from inside the container: few at once, and none that is written to without end."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

MAX_INSIDE, MAX_ALL = 32, 512
_MAX_UNREAD_BYTES = 1 << 20


class Connection(H11Protocol):
    """Closed at once when there are too many. Those from inside have a limit of their own: clients still come in."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count it with all that are open."""
        super().connection_made(transport)
        inside = sum(map(_is_from_inside, self.connections)) if _is_from_inside(self) else 0
        if inside > MAX_INSIDE or len(self.connections) > MAX_ALL:
            transport.abort()


class Socket(WebSocketsSansIOProtocol):
    """A client that sends pings and reads no answers is cut off."""

    def handle_ping(self) -> None:
        """Answer, unless the answers pile up."""
        super().handle_ping()
        if self.transport.get_write_buffer_size() > _MAX_UNREAD_BYTES:
            self.transport.abort()


def _is_from_inside(connection: object) -> bool:
    client, server = getattr(connection, "client", None), getattr(connection, "server", None)
    return client is not None and server is not None and (client[0] == server[0] or client[0].startswith("127."))
