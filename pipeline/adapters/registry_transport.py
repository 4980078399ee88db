"""Sends one call: redirects by rule, no retries, no credentials of its own, no cookies, no proxies.

urllib3 is used directly on purpose: requests reads netrc, proxy variables and cookies unless told otherwise in several
places; a bare pool knows none of them.
"""

from __future__ import annotations

import logging

import urllib3
from certifi import where as certificates_path

from pipeline.adapters.registry_exchange import CHUNK_BYTES, Answer, Call, Limits
from pipeline.adapters.registry_url import follow, load_origin
from pipeline.adapters.registry_wire import HttpPool, HttpsPool, make_failure
from pipeline.errors import HostileInputError

MAX_REDIRECTS = 5
REDIRECTS = frozenset({301, 302, 303, 307, 308})


class Transport:
    """A pool of connections. Redirects are followed by rule, and Authorization never leaves its origin."""

    def __init__(self, limits: Limits) -> None:
        # urllib3 warns about malformed headers with the URL in the text, and a URL can carry a signature.
        logging.getLogger("urllib3.connection").disabled = True
        self.limits = limits
        self._pool = urllib3.PoolManager(
            num_pools=8,
            maxsize=8,
            retries=False,
            timeout=urllib3.Timeout(connect=limits.connect_s, read=limits.answer_s),
            ca_certs=certificates_path(),
            blocksize=CHUNK_BYTES,
        )
        self._pool.pool_classes_by_scheme = {"http": HttpPool, "https": HttpsPool}

    def send(self, call: Call, authorization: str | None) -> Answer:
        """Send a call, following redirects where it allows them; Temporary when the network fails."""
        url = call.url
        origin = load_origin(url, call.where)
        for hops in range(MAX_REDIRECTS + 1):
            answer = self._send_once(call, url, authorization, is_redirected=hops > 0)
            if not call.redirects or answer.status not in REDIRECTS:
                return answer
            with answer:
                url = follow(url, answer.header("Location") or "", call.where)
            if load_origin(url, call.where) != origin:
                authorization = None
        raise HostileInputError(f"more than {MAX_REDIRECTS} redirects", where=call.where)

    def close(self) -> None:
        """Close idle connections."""
        self._pool.clear()

    def _send_once(self, call: Call, url: str, authorization: str | None, *, is_redirected: bool) -> Answer:
        body = call.body() if call.body else None
        headers = {"Accept-Encoding": "identity", "User-Agent": "release-pipeline", **call.headers}
        if body is not None:
            headers["Content-Length"] = str(body.size)
        if authorization is not None:
            headers["Authorization"] = authorization
        try:
            response = self._pool.urlopen(
                call.method,
                url,
                body=body,
                headers=headers,
                redirect=False,
                preload_content=False,
                decode_content=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise make_failure(error, url, call.where) from None
        return Answer(response, call, url, is_redirected, self.limits)  # type: ignore[arg-type]
