"""A request and its answer as values: bodies that are counted, answers that are bounded in size and in time."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import BinaryIO, Self

import urllib3
from urllib3.response import HTTPResponse

from pipeline.adapters.registry_retry import Temporary
from pipeline.adapters.registry_url import load_origin
from pipeline.adapters.registry_wire import make_failure
from pipeline.errors import HostileInputError, ServiceError, StorageError

CHUNK_BYTES = 256 << 10
MAX_HEADER_CHARS = 16 << 10


@dataclass(frozen=True)
class Limits:
    """Of one exchange. `answer_s` bounds the whole head of an answer, and every silence inside a body."""

    connect_s: float = 10.0
    answer_s: float = 60.0
    slowest_bytes_per_s: int = 64 << 10

    def body_s(self, expected_bytes: int) -> float:
        """The longest that a body of this size may take."""
        return self.answer_s + expected_bytes / self.slowest_bytes_per_s


DEFAULT_LIMITS = Limits()


class Meter:
    """Body bytes of manifests and blobs on the wire, counted across threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.sent_bytes = self.received_bytes = 0

    def sent(self, count: int) -> None:
        """Count bytes handed to the socket."""
        with self._lock:
            self.sent_bytes += count

    def received(self, count: int) -> None:
        """Count bytes that arrived."""
        with self._lock:
            self.received_bytes += count


class Body:
    """A request body that is read from a stream in bounded pieces and counted."""

    def __init__(self, stream: BinaryIO, size: int, meter: Meter | None, observe: Callable[[bytes], None]) -> None:
        self._stream, self.size, self._meter, self._observe = stream, size, meter, observe

    def read(self, count: int = CHUNK_BYTES) -> bytes:
        """The next piece; a failing disk is told apart from a failing network here, since urllib3 cannot."""
        try:
            data = self._stream.read(min(count, CHUNK_BYTES))
        except OSError as error:
            raise StorageError(f"cannot read a blob from disk: {error.strerror}") from error
        if self._meter:
            self._meter.sent(len(data))
        self._observe(data)
        return data


def make_body(data: bytes, meter: Meter | None = None) -> Body:
    """A body of bytes in memory."""
    return Body(io.BytesIO(data), len(data), meter, lambda piece: None)


@dataclass(frozen=True)
class Call:
    """A request. `body` makes a fresh body for each sending; `where` is what errors name."""

    method: str
    url: str
    where: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Callable[[], Body] | None = None
    redirects: bool = False


class Answer:
    """An open answer, of `url`, which is not the call's where it was redirected.

    Use it in a `with`: leaving gives the connection back, or drops it when bytes are left.
    """

    def __init__(self, response: HTTPResponse, call: Call, url: str, is_redirected: bool, limits: Limits) -> None:
        self._response, self._limits = response, limits
        self.status = response.status
        self.call, self.url, self.is_redirected = call, url, is_redirected

    def header(self, name: str) -> str | None:
        """A header's value; HostileInputError when it is too long."""
        value: str | None = self._response.headers.get(name)
        if value is not None and len(value) > MAX_HEADER_CHARS:
            raise HostileInputError(f"a {name} header of {len(value)} characters", where=self.call.where)
        return value

    def chunks(self, expected_bytes: int) -> Iterator[bytes]:
        """The body as it arrives, not decoded. Temporary when it breaks off or takes longer than its size allows."""
        limit_s = self._limits.body_s(expected_bytes)
        late = threading.Event()
        watchdog = threading.Timer(limit_s, _cut, (self._response, late))
        watchdog.daemon = True
        watchdog.start()
        try:
            while data := self._read_some():
                yield data
        except Temporary as temporary:
            raise (self._late(limit_s) if late.is_set() else temporary) from None
        finally:
            watchdog.cancel()
        if late.is_set():
            raise self._late(limit_s)

    def read(self, limit_bytes: int) -> bytes:
        """The whole body; HostileInputError when it is longer than the limit."""
        data = bytearray()
        for chunk in self.chunks(limit_bytes):
            data += chunk
            if len(data) > limit_bytes:
                raise HostileInputError(f"an answer of more than {limit_bytes} bytes", where=self.call.where)
        return bytes(data)

    def close(self) -> None:
        """Give the connection back when the body has been read, else drop it."""
        if self._response.length_remaining == 0:
            self._response.drain_conn()
            self._response.release_conn()
        else:
            self._response.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read_some(self) -> bytes:
        try:
            return self._response.read1(CHUNK_BYTES) or b""
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise make_failure(error, self.call.url, self.call.where) from None

    def _late(self, limit_s: float) -> Temporary:
        host = load_origin(self.url, self.call.where).host
        return Temporary(ServiceError(f"an answer took longer than {limit_s:.0f} s: {host}", where=self.call.where))


def _cut(response: HTTPResponse, late: threading.Event) -> None:
    late.set()
    try:
        response.shutdown()
    except (ValueError, OSError):
        return
