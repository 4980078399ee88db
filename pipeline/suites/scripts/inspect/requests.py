"""Runs as root in a container: whether HTTP opens a session that no client ends, and how an endless body is answered.

A session that is opened is closed again, for the sake of the checks that follow.
"""

import json
import socket
import time
import urllib.request
from typing import Any

CHUNK = b"10000\r\n" + b" " * 65_536 + b"\r\n"
MAX_CHUNKS = 1024


def call(method: str, **params: Any) -> dict[str, Any]:
    """The result of a JSON-RPC request; empty when it is refused."""
    body = {"jsonrpc": "2.0", "id": 1, "method": f"openenv/session/{method}", "params": params}
    request = urllib.request.Request("http://127.0.0.1:8000/mcp", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310 - a constant scheme
        return json.load(reply).get("result") or {}


def opens_session() -> bool:
    """Tried for a second: the client before may still be leaving the only slot."""
    for _ in range(10):
        if session := call("create").get("session_id"):
            call("close", session_id=session)
            return True
        time.sleep(0.1)
    return False


def send_endless_body() -> str:
    """The status of the answer that ends it; empty when 64 MiB are taken."""
    with socket.create_connection(("127.0.0.1", 8000), timeout=30) as client:
        client.sendall(b"POST /reset HTTP/1.1\r\nHost: arena\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(MAX_CHUNKS):
                client.sendall(CHUNK)
        except OSError:
            return client.recv(12)[9:].decode()
    return ""


print(json.dumps([opens_session(), send_endless_body()]))
