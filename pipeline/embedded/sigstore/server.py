"""HTTP on 127.0.0.1 for `service`: routes, limits, and nothing else. Requests are answered in parallel."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pipeline.embedded.sigstore.refusal import RefusedError
from pipeline.embedded.sigstore.service import Clocks, Services
from pipeline.embedded.sigstore.tlog import TILE_WIDTH
from pipeline.errors import ServiceError, StorageError

SOCKET_TIMEOUT_S = 30
MAX_BODY_BYTES = 64 << 10
# Rekor v1 is sent the whole envelope: a 16 MiB statement in base64, inside a JSON string.
MAX_ENTRY_REQUEST_BYTES = 32 << 20

_TILE = re.compile(
    r"/api/v2/tile/(?P<level>entries|[0-7])/(?P<index>(?:x[0-9]{3}/){0,5}[0-9]{3})(?:\.p/(?P<width>[1-9][0-9]{0,2}))?"
)
_JSON = "application/json"


class PrivateSigstore:
    """The services behind a socket. A context manager: serves in a thread while it is entered."""

    def __init__(self, state_path: Path, port: int, clocks: Clocks | None = None) -> None:
        handler = type("_Bound", (_Exchange,), {})
        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        except OSError as error:
            raise ServiceError(
                f"port {port} cannot be listened on: {error.strerror}",
                where=f"127.0.0.1:{port}",
                remedy="stop what listens there, or give the target another port",
            ) from error
        self._server.daemon_threads = True
        self.port = int(self._server.server_port)
        try:
            self.services = Services(state_path, self.port, clocks)
        except BaseException:
            self._server.server_close()
            raise
        handler.services = self.services  # type: ignore[attr-defined]

    def serve(self) -> None:
        """Answer until `stop` is called from another thread."""
        self._server.serve_forever(poll_interval=0.05)

    def stop(self) -> None:
        """Stop answering and give the port and the logs up."""
        self._server.shutdown()
        self._server.server_close()
        self.services.close()

    def __enter__(self) -> PrivateSigstore:
        threading.Thread(target=self.serve, name="private-sigstore", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Exchange(BaseHTTPRequestHandler):
    services: Services
    protocol_version = "HTTP/1.1"
    timeout = SOCKET_TIMEOUT_S
    wbufsize = -1  # one write an answer: otherwise Nagle's algorithm and delayed acknowledgements cost 40 ms each
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Documents, tokens and tiles."""
        self._answer(self._get)

    def do_POST(self) -> None:
        """Certificates, entries and timestamps."""
        self._answer(self._post)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        """Say nothing: request lines of a token endpoint do not belong in a log."""

    def _get(self) -> tuple[int, bytes, str]:
        url = urlsplit(self.path)
        documents: dict[str, Callable[[], dict[str, Any]]] = {
            "/oidc/.well-known/openid-configuration": self.services.issuer.configuration,
            "/oidc/keys": self.services.issuer.key_set,
            "/oidc/ambient": lambda: self.services.ambient_token(
                self.headers.get("Authorization", ""), parse_qs(url.query).get("audience", [""])[0]
            ),
            "/api/v2/trustBundle": self.services.trust_bundle,
        }
        if url.path in documents:
            return 200, _json(documents[url.path]()), _JSON
        if url.path == "/api/v2/checkpoint":
            return 200, self.services.log(2).checkpoint().encode(), "text/plain; charset=utf-8"
        if match := _TILE.fullmatch(url.path):
            return 200, self._tile(match), "application/octet-stream"
        raise RefusedError(404, "there is nothing at this path")

    def _post(self) -> tuple[int, bytes, str]:
        if self.path == "/api/v1/log/entries":
            return 201, _json(self.services.log_version1(self._body(MAX_ENTRY_REQUEST_BYTES))), _JSON
        body = self._body(MAX_BODY_BYTES)
        if self.path == "/api/v2/log/entries":
            return 201, _json(self.services.log_version2(body)), _JSON
        if self.path == "/api/v2/signingCert":
            return 201, _json(self.services.certify(body, self.headers.get("Authorization", ""))), _JSON
        if self.path == "/api/v1/timestamp":
            return 201, self.services.timestamp(body), "application/timestamp-reply"
        raise RefusedError(404, "there is nothing at this path")

    def _body(self, limit_bytes: int) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or "Transfer-Encoding" in self.headers:
            raise RefusedError(411, "a request says its length")
        if int(length) > limit_bytes:
            raise RefusedError(413, f"a request of {length} bytes; the limit is {limit_bytes}")
        body = self.rfile.read(int(length))
        if len(body) != int(length):
            raise RefusedError(400, "the request ended before its length")
        return body

    def _tile(self, match: re.Match[str]) -> bytes:
        index = int(match["index"].replace("x", "").replace("/", ""))
        width = int(match["width"] or TILE_WIDTH)
        log = self.services.log(2)
        level = match["level"]
        found = log.bundle(index, width) if level == "entries" else log.tile(int(level), index, width)
        if found is None or width > TILE_WIDTH:
            raise RefusedError(404, "the log has not grown to this tile")
        return found

    def _answer(self, make: Callable[[], tuple[int, bytes, str]]) -> None:
        try:
            status, data, kind = make()
        except RefusedError as error:
            # What is left of a refused request would be read as the next one.
            self.close_connection = True
            status, data, kind = error.status, _json({"code": error.status, "message": error.what}), _JSON
        except StorageError as error:
            self.close_connection = True
            status, data, kind = 503, _json({"code": 503, "message": error.what}), _JSON
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode()
