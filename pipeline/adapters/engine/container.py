"""One container of the engine, observed from outside."""

from __future__ import annotations

import io
import struct
import time
from collections.abc import Sequence
from contextlib import closing
from typing import Any, cast

from docker.errors import APIError, NotFound

from pipeline.adapters.engine.errors import engine_errors
from pipeline.errors import HostileInputError, ServiceError
from pipeline.ports import ExecResult

MAX_OUTPUT_BYTES = 64 << 20
_REMOVAL_S = 20
_FRAME = struct.Struct(">BxxxL")


class SdkContainer:
    """`ports.Container` over the SDK's plain API."""

    def __init__(self, api: Any, container_id: str, port: int) -> None:
        self._api, self._id, self._port = api, container_id, port

    @property
    def id(self) -> str:
        """The engine's id."""
        return self._id

    @property
    def url(self) -> str:
        """http://127.0.0.1:<port> of the image's server."""
        with self._errors("look up its port"):
            bindings = self._inspect()["NetworkSettings"]["Ports"].get(f"{self._port}/tcp")
        if not bindings:
            raise ServiceError(f"port {self._port} is not published", where=self._id[:12], remedy=self._last_words())
        return f"http://127.0.0.1:{bindings[0]['HostPort']}"

    def exec(self, argv: Sequence[str], *, user: str = "0:0", timeout_s: float = 60, stdin: bytes = b"") -> ExecResult:
        """Run argv; output is stdout and stderr as they came. ServiceError at the timeout or without a container."""
        with self._errors(f"run {argv[0]}"):
            created = self._api.exec_create(self._id, list(argv), user=user, stdin=bool(stdin))
            output = self._exchange(created["Id"], stdin, time.monotonic() + timeout_s)
            exit_code = self._api.exec_inspect(created["Id"])["ExitCode"]
        return ExecResult(int(exit_code), output)

    def memory_bytes(self) -> int:
        """Resident memory of the container, without page cache."""
        with self._errors("measure its memory"):
            counters = self._api.stats(self._id, stream=False, one_shot=True)["memory_stats"].get("stats", {})
        # control groups version 2 call it anon, version 1 rss
        resident = counters.get("anon", counters.get("total_rss", counters.get("rss")))
        if resident is None:
            raise ServiceError("the engine reports no memory", where=self._id[:12], remedy="enable the memory cgroup")
        return int(resident)

    def writable_bytes(self) -> int:
        """What the container has written over its image."""
        with self._errors("measure its writable layer"):
            (found,) = self._api.containers(all=True, size=True, filters={"id": self._id})
        return int(found.get("SizeRw", 0))

    def stop(self, timeout_s: int = 10) -> float:
        """Send the stop signal; seconds until it had exited."""
        started = time.monotonic()
        with self._errors("stop"):
            self._api.stop(self._id, timeout=timeout_s)
        return time.monotonic() - started

    def remove(self) -> None:
        """Kill and remove, with its volumes; nothing when it is gone."""
        with self._errors("remove"):
            remove_container(self._api, self._id)

    def _exchange(self, exec_id: str, stdin: bytes, deadline: float) -> bytes:
        raw = self._api.exec_start(exec_id, socket=True)
        with closing(raw._response):
            # The SDK's raw socket loses what the response's reader already took beside the headers; read through it.
            reader = cast(io.BufferedReader, raw._response.raw._fp.fp)
            connection = raw._sock
            connection.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                if stdin:
                    connection.sendall(stdin)
                    connection.shutdown(1)
                return _read_frames(reader, connection, deadline)
            except TimeoutError:
                raise ServiceError(
                    "a command did not end in time", where=self._id[:12], remedy="see what the container is doing"
                ) from None

    def _inspect(self) -> dict[str, Any]:
        return cast(dict[str, Any], self._api.inspect_container(self._id))

    def _last_words(self) -> str:
        with self._errors("read its log"):
            log: bytes = self._api.logs(self._id, tail=5)
        return f"the container's last output: {log.decode('utf-8', 'replace').strip() or 'nothing'}"

    def _errors(self, what: str) -> Any:
        return engine_errors(f"{what}, a container", self._id[:12])


def _read_frames(reader: io.BufferedReader, connection: Any, deadline: float) -> bytes:
    output = bytearray()
    while header := _read_exactly(reader, _FRAME.size, connection, deadline):
        output += _read_exactly(reader, _FRAME.unpack(header)[1], connection, deadline)
        if len(output) > MAX_OUTPUT_BYTES:
            raise HostileInputError(f"a command printed more than {MAX_OUTPUT_BYTES} bytes")
    return bytes(output)


def _read_exactly(reader: io.BufferedReader, count: int, connection: Any, deadline: float) -> bytes:
    """`count` bytes, or fewer at the end of the stream. The deadline is for all of the exchange."""
    data = bytearray()
    while len(data) < count:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        connection.settimeout(left)
        chunk = reader.read1(count - len(data))
        if not chunk:
            break
        data += chunk
    return bytes(data)


def remove_container(api: Any, name: str) -> None:
    """Kill and remove by name or id, and wait until it is gone, also when another removal is already under way."""
    deadline = time.monotonic() + _REMOVAL_S
    while time.monotonic() < deadline:
        try:
            api.remove_container(name, v=True, force=True)
        except NotFound:
            return
        except APIError as error:
            if error.status_code != 409:
                raise
            time.sleep(0.05)
        else:
            return
    raise ServiceError("a container is not removed", where=name, remedy="see the engine's log, then run it again")
