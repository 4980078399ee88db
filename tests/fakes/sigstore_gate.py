"""A gate before a real private Sigstore, which is down when a test says so, and a clock that moves when one sleeps."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import requests

from pipeline.adapters.keyless import KeylessSigner
from pipeline.embedded.sigstore import trust
from tests.fakes.private_sigstore import Party, running

PATHS = {
    "/api/v2/signingCert": "signing certificate",
    "/api/v1/timestamp": "signed timestamp",
    "/api/v1/log/entries": "log entry",
}


@dataclass
class Gate:
    """Stands before a private Sigstore and answers some requests itself: `plan` maps a path to its next statuses."""

    party: Party
    plan: dict[str, list[int]] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)
    port: int = 0

    def signer(self, budget_s: float, time: FakeTime, token: Callable[[], str] | None = None) -> KeylessSigner:
        config = trust.trust_config(self.party.state_path, self.port, 1)
        return KeylessSigner(config, token or self.party.token(), budget_s, time.clock, time.sleep)

    def answer(self, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        self.seen.append(path)
        statuses = self.plan.get(path, [])
        if statuses:
            return statuses.pop(0), b'{"code":1,"message":"planned"}'
        reply = requests.post(f"http://127.0.0.1:{self.party.port}{path}", data=body, headers=headers, timeout=10)
        return reply.status_code, reply.content


@dataclass
class FakeTime:
    """A clock that moves when somebody sleeps."""

    now_s: float = 0
    pauses: list[float] = field(default_factory=list)

    def clock(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now_s += seconds


@contextmanager
def gated(state_path: Path) -> Iterator[Gate]:
    """A gate before a private Sigstore of its own, for the length of a block."""
    with running(state_path) as party:
        gate = Gate(party)

        class Exchange(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                kept = {name: self.headers[name] for name in ("Authorization", "Content-Type") if name in self.headers}
                status, data = gate.answer(self.path, body, kept)
                self.send_response(status)
                if status == 307:
                    self.send_header("Location", f"http://127.0.0.1:{party.port}{self.path}")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Exchange)
        gate.port = server.server_port
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield gate
        finally:
            server.shutdown()
            server.server_close()
