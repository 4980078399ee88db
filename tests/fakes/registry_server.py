"""A small real HTTP server that speaks the distribution API over memory, and misbehaves when told to.

Tests script it: `server.inject(fault, method="GET", path="/blobs/", times=1)`. A fault gets the handler and the reply
that an honest registry would give, and sends what it likes instead. Every request is kept, with what it carried.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from pipeline.model.digest import digest_of
from pipeline.model.oci import OCI_INDEX, Manifest
from tests.fakes.registry_content import Content, Repository

USER, PASSWORD = "publisher", "correct-horse-battery"
_PATH = re.compile(r"/v2/(?P<name>.+)/(?P<kind>manifests|blobs|referrers)/(?P<rest>.*)")


@dataclass
class Reply:
    """An answer before it is sent."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """A request that arrived."""

    method: str
    path: str
    authorization: str
    headers: Mapping[str, str]
    body_bytes: int


Fault = Callable[["Handler", Reply], None]


@dataclass
class _Injected:
    fault: Fault
    method: str
    path: str
    times: int


class RegistryServer:
    """A registry on a free loopback port, for a `with`."""

    def __init__(
        self,
        content: Content | None = None,
        *,
        auth: str = "token",
        is_private: bool = False,
        referrers_api: bool = False,
        page_size: int = 2,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.content = content or Content()
        self.auth, self.is_private = auth, is_private
        self.referrers_api, self.page_size = referrers_api, page_size
        self.realm: str | None = None
        self.refuses_mount = False
        self.seen: list[Seen] = []
        self.connections = 0
        self.tokens: dict[str, tuple[str, ...]] = {}
        self._faults: list[_Injected] = []
        self._uploads: set[str] = set()
        self._http = _QuietServer(("127.0.0.1", 0), Handler)
        self._http.registry = self  # type: ignore[attr-defined]
        if tls:
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._http.server_address[1]}"

    @property
    def url(self) -> str:
        return f"http://{self.host}"

    def inject(self, fault: Fault, *, method: str = "GET", path: str = "/v2/", times: int = 1) -> None:
        """Let the next `times` requests of this method whose path contains `path` meet the fault."""
        self._faults.append(_Injected(fault, method, path, times))

    def count(self, method: str, path: str) -> int:
        return sum(1 for seen in self.seen if seen.method == method and path in seen.path)

    def next_fault(self, method: str, path: str) -> Fault | None:
        for injected in self._faults:
            if injected.times > 0 and injected.method == method and injected.path in path:
                injected.times -= 1
                return injected.fault
        return None

    def reply(self, method: str, path: str, authorization: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """What an honest registry answers."""
        parts = urlsplit(path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        if parts.path == "/token":
            return self._token(parse_qs(parts.query).get("scope", []), authorization)
        match = _PATH.fullmatch(parts.path)
        if match is None:
            return _error(404, "UNSUPPORTED")
        if not self._is_allowed(method, match["name"], authorization):
            return self._challenge(match["name"])
        with self.content.lock:
            repository = self.content.repository(match["name"])
            if match["kind"] == "manifests":
                return self._manifest(method, repository, match["rest"], headers, body)
            if match["kind"] == "referrers":
                return self._referrers(repository, match["name"], match["rest"], query)
            return self._blob(method, repository, match["name"], match["rest"], query, headers, body)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _challenge(self, name: str) -> Reply:
        if self.auth == "basic":
            header = 'Basic realm="registry"'
        else:
            realm = f"{self.url}/token" if self.realm is None else self.realm
            header = f'Bearer realm="{realm}",service="test, registry",scope="repository:{name}:pull,push,delete"'
        return _error(401, "UNAUTHORIZED", {"WWW-Authenticate": header})

    def _is_user(self, authorization: str) -> bool:
        return authorization == "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

    def _token(self, scopes: list[str], authorization: str) -> Reply:
        if authorization and not self._is_user(authorization):
            return _error(401, "UNAUTHORIZED")
        granted = []
        for scope in scopes:
            _, name, actions = scope.split(":")
            granted += [f"{name}:{action}" for action in actions.split(",") if authorization or self._is_open(action)]
        token = secrets.token_urlsafe(24)
        self.tokens[token] = tuple(granted)
        return _json(200, {"token": token, "expires_in": 300})

    def _is_open(self, action: str) -> bool:
        return action == "pull" and not self.is_private

    def _is_allowed(self, method: str, name: str, authorization: str) -> bool:
        action = "pull" if method in ("GET", "HEAD") else "push"
        if self.auth == "none" or (self.auth == "basic" and self._is_user(authorization)):
            return True
        return f"{name}:{action}" in self.tokens.get(authorization.removeprefix("Bearer "), ())

    def _manifest(
        self, method: str, repository: Repository, selector: str, headers: Mapping[str, str], body: bytes
    ) -> Reply:
        if method == "PUT":
            manifest = Manifest(body, headers.get("content-type", ""))
            if selector.startswith("sha256:") and selector != manifest.digest:
                return _error(400, "DIGEST_INVALID")
            if repository.missing_blobs(manifest):
                return _error(404, "MANIFEST_BLOB_UNKNOWN")
            repository.put(selector, manifest)
            subject = json.loads(body).get("subject")
            indexed = {"OCI-Subject": subject["digest"]} if subject and self.referrers_api else {}
            return Reply(201, b"", {"Docker-Content-Digest": manifest.digest, **indexed})
        found = repository.find(selector)
        if found is None:
            return _error(404, "MANIFEST_UNKNOWN")
        return Reply(200, found.raw, {"Content-Type": found.media_type, "Docker-Content-Digest": found.digest})

    def _referrers(self, repository: Repository, name: str, digest: str, query: Mapping[str, str]) -> Reply:
        if not self.referrers_api:
            return Reply(404, b"404 page not found", {"Content-Type": "text/plain"})
        entries, start = repository.referrers(digest), int(query.get("n", "0"))
        page = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": entries[start : start + self.page_size]}
        reply = _json(200, page, {"Content-Type": OCI_INDEX})
        if start + self.page_size < len(entries):
            reply.headers["Link"] = f'</v2/{name}/referrers/{digest}?n={start + self.page_size}>; rel="next"'
        return reply

    def _blob(
        self,
        method: str,
        repository: Repository,
        name: str,
        rest: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
    ) -> Reply:
        if method == "POST":
            return self._begin(repository, name, query)
        if method == "PUT":
            return self._finish(repository, rest, query, body)
        data = repository.blobs.get(rest)
        if data is None:
            return _error(404, "BLOB_UNKNOWN")
        asked = re.fullmatch(r"bytes=(\d+)-", headers.get("range", ""))
        if asked:
            start = int(asked[1])
            return Reply(206, data[start:], {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"})
        return Reply(200, data, {"Content-Type": "application/octet-stream", "Docker-Content-Digest": rest})

    def _begin(self, repository: Repository, name: str, query: Mapping[str, str]) -> Reply:
        source = self.content.repository(query.get("from", "-")).blobs.get(query.get("mount", ""))
        if source is not None and not self.refuses_mount:
            repository.blobs[query["mount"]] = source
            return Reply(201, b"", {"Docker-Content-Digest": query["mount"]})
        upload = secrets.token_hex(8)
        self._uploads.add(upload)
        return Reply(202, b"", {"Location": f"/v2/{name}/blobs/uploads/{upload}?_state=opaque"})

    def _finish(self, repository: Repository, rest: str, query: Mapping[str, str], body: bytes) -> Reply:
        upload = rest.removeprefix("uploads/")
        if upload not in self._uploads or query.get("_state") != "opaque":
            return _error(404, "BLOB_UPLOAD_UNKNOWN")
        if digest_of(body) != query.get("digest"):
            return _error(400, "DIGEST_INVALID")
        self._uploads.discard(upload)
        repository.blobs[digest_of(body)] = body
        return Reply(201, b"", {"Docker-Content-Digest": digest_of(body)})


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that break off are what the tests are about."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # a head in one segment, as real servers send it

    def setup(self) -> None:
        super().setup()
        self.server.registry.connections += 1  # type: ignore[attr-defined]

    def answer(self) -> None:
        registry: RegistryServer = self.server.registry  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        authorization = headers.get("authorization", "")
        registry.seen.append(Seen(self.command, self.path, authorization, headers, len(body)))
        reply = registry.reply(self.command, self.path, authorization, headers, body)
        fault = registry.next_fault(self.command, self.path) if reply.status != 401 else None
        try:
            (fault or send)(self, reply)
            if not self.wfile.closed:
                self.wfile.flush()
        except OSError:
            self.close_connection = True

    do_GET = do_HEAD = do_POST = do_PUT = answer  # noqa: N815  names of http.server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        return


def send(handler: Handler, reply: Reply) -> None:
    """Send a reply as it is."""
    handler.send_response(reply.status)
    for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(reply.body)


def _json(status: int, document: object, headers: dict[str, str] | None = None) -> Reply:
    return Reply(status, json.dumps(document).encode(), {"Content-Type": "application/json", **(headers or {})})


def _error(status: int, code: str, headers: dict[str, str] | None = None) -> Reply:
    return _json(status, {"errors": [{"code": code, "message": f"it is {code}"}]}, headers)
