"""Loopback ports: whether one is free, who holds it, and whether an HTTP server answers there."""

from __future__ import annotations

import http.client
import socket
from contextlib import closing
from pathlib import Path
from typing import Final

from pipeline.embedded.process import read_argv, wait_until
from pipeline.errors import ServiceError

HOST: Final = "127.0.0.1"
_LISTEN = "0A"
_RELEASE_S = 1
_MAX_BODY_BYTES = 1 << 20
_MAX_ARGV_CHARS = 120


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket, as a Docker engine speaks it."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket's path instead of a host."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def http_status(connection: http.client.HTTPConnection, path: str) -> int | None:
    """The status of one GET, or None when nothing answers. No proxy, no redirect, a bounded body."""
    with closing(connection):
        try:
            connection.request("GET", path)
            reply = connection.getresponse()
            reply.read(_MAX_BODY_BYTES)  # unread bytes would reset the connection in the server's face
            return reply.status
        except (OSError, http.client.HTTPException):
            return None


def port_status(port: int, path: str, timeout_s: float = 2) -> int | None:
    """`http_status` of a loopback port."""
    return http_status(http.client.HTTPConnection(HOST, port, timeout=timeout_s), path)


def require_free_port(port: int, purpose: str) -> None:
    """ServiceError unless 127.0.0.1:port can be bound soon; it names the holder when /proc shows it.

    Soon: the threads of a process that was killed hold its sockets a moment longer than the process is listed.
    """
    if not wait_until(lambda: _is_free(port), _RELEASE_S):
        raise ServiceError(
            f"port {port} is taken; the {purpose} needs it",
            where=f"{HOST}:{port}, held by {describe_holder(port)}",
            remedy="stop that process, then run the same command again",
        )


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def describe_holder(port: int) -> str:
    """`process <pid> (<command>)` of whoever listens on a TCP port of this machine."""
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            held = str(descriptor.readlink()) in sockets
        except OSError:
            continue
        if held:
            pid = int(descriptor.parts[2])
            return f"process {pid} ({' '.join(read_argv(pid))[:_MAX_ARGV_CHARS]})"
    return "a process that /proc does not show"


def _listening_inodes(port: int) -> list[str]:
    inodes = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if Path(table).exists():
            rows = [line.split() for line in Path(table).read_text().splitlines()[1:]]
            inodes += [row[9] for row in rows if row[3] == _LISTEN and int(row[1].rpartition(":")[2], 16) == port]
    return inodes
