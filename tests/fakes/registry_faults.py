"""Faults for `RegistryServer.inject`: each sends something else than the honest reply."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable

from tests.fakes.registry_server import Fault, Handler, Reply, send


def answering(status: int, body: bytes = b"", **headers: str) -> Fault:
    """Another answer. Header names are given with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler, reply: send(handler, Reply(status, body, named))


def changing(change: Callable[[Reply], None]) -> Fault:
    """The honest reply, changed in place."""

    def fault(handler: Handler, reply: Reply) -> None:
        change(reply)
        send(handler, reply)

    return fault


def with_header(name: str, value: str) -> Fault:
    return changing(lambda reply: reply.headers.__setitem__(name, value))


def corrupting(handler: Handler, reply: Reply) -> None:
    """One bit of the body is another."""
    send(handler, Reply(reply.status, reply.body[:-1] + bytes([reply.body[-1] ^ 1]), reply.headers))


def ending_after(count: int, *, reset: bool = False, announced: bool = True) -> Fault:
    """The body stops after `count` bytes: closed, or reset; with its whole length announced, or none."""

    def fault(handler: Handler, reply: Reply) -> None:
        handler.send_response(reply.status)
        for name, value in reply.headers.items():
            handler.send_header(name, value)
        if announced:
            handler.send_header("Content-Length", str(len(reply.body)))
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(reply.body[:count])
        handler.wfile.flush()
        handler.close_connection = True
        if reset:
            time.sleep(0.05)  # let what was sent be read: a reset throws away what is still under way
            _reset(handler)

    return fault


def resetting(handler: Handler, reply: Reply) -> None:
    """No answer: the connection is reset."""
    _reset(handler)


def dripping(interval_s: float) -> Fault:
    """The honest reply, a byte at a time."""

    def fault(handler: Handler, reply: Reply) -> None:
        handler.send_response(reply.status)
        for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        _drip(handler, reply.body, interval_s)

    return fault


def dripping_head(handler: Handler, reply: Reply) -> None:
    """A head that never ends, slowly enough never to be silent."""
    _drip(handler, b"HTTP/1.1 200 OK\r\nX-Slow: " + b"a" * 400, 0.05)


def continuing(handler: Handler, reply: Reply) -> None:
    """Interim answers without an end, and never the real one."""
    while True:
        handler.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        handler.wfile.flush()
        time.sleep(0.01)


def endless_trailers(handler: Handler, reply: Reply) -> None:
    """A whole body in chunks, then trailer fields without an end."""
    handler.send_response(reply.status)
    for name, value in reply.headers.items():
        handler.send_header(name, value)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b"%x\r\n%s\r\n0\r\n" % (len(reply.body), reply.body))
    while True:
        handler.wfile.write(b"X-Trailer: x\r\n")
        handler.wfile.flush()
        time.sleep(0.01)


def header_bomb(handler: Handler, reply: Reply) -> None:
    """More headers than anybody needs."""
    reply.headers |= {f"X-Bomb-{number}": "x" * 1000 for number in range(500)}
    send(handler, reply)


def endless(handler: Handler, reply: Reply) -> None:
    """A body without an end."""
    handler.send_response(reply.status)
    for name, value in reply.headers.items():
        handler.send_header(name, value)
    handler.send_header("Connection", "close")
    handler.end_headers()
    handler.close_connection = True
    while True:
        handler.wfile.write(b"[" * (1 << 16))


def _drip(handler: Handler, data: bytes, interval_s: float) -> None:
    for position in range(len(data)):
        handler.wfile.write(data[position : position + 1])
        handler.wfile.flush()
        time.sleep(interval_s)
    handler.close_connection = True


def _reset(handler: Handler) -> None:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.rfile.close()
    handler.wfile.close()
    handler.connection.close()
    handler.close_connection = True
