"""An environment server's plain HTTP routes, seen from outside: is it ready, and which schema does it serve."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import requests
from pydantic import JsonValue

from pipeline.errors import HostileInputError, ServiceError

READY_TIMEOUT_S = 120.0
MAX_BODY_BYTES = 1 << 20


def wait_ready(url: str, is_over: Callable[[], bool] = bool, timeout_s: float = READY_TIMEOUT_S) -> float:
    """Seconds until GET /health answered 200; ServiceError after timeout_s, or once nobody waits any more."""
    started = time.monotonic()
    with _session() as session:
        while (waited := time.monotonic() - started) < timeout_s and not is_over():
            try:
                if session.get(f"{url}/health", timeout=5, allow_redirects=False).status_code == 200:
                    return waited
            except requests.RequestException:
                pass  # not listening yet
            time.sleep(0.01)
    raise ServiceError(f"not ready after {waited:.0f} s", where=url, remedy="look at the container's log")


def fetch_schema(url: str) -> Mapping[str, JsonValue]:
    """The documents of GET /schema by name: action, observation, state."""
    with _session() as session, session.get(f"{url}/schema", timeout=30, stream=True, allow_redirects=False) as answer:
        body = answer.raw.read(MAX_BODY_BYTES + 1, decode_content=True)
        if answer.status_code != 200 or len(body) > MAX_BODY_BYTES:
            raise HostileInputError(f"/schema answers {answer.status_code}, {len(body)} bytes", where=url)
    return _object(body, url)


def _object(body: bytes, url: str) -> Mapping[str, JsonValue]:
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise HostileInputError("/schema is not JSON", where=url) from error
    if not isinstance(value, dict):
        raise HostileInputError("/schema is not an object", where=url)
    return value


def _session() -> requests.Session:
    session = requests.Session()
    session.trust_env = False  # loopback: no proxy in between
    return session
