"""One blob, streamed: hashed as it arrives, resumed with Range where a transfer broke off, never longer than its size.

Chunks that were handed on cannot be taken back. A registry that ignores Range therefore sends the beginning again, and
the beginning must be the same bytes as before.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from pipeline.adapters.registry_auth import Scope
from pipeline.adapters.registry_exchange import Answer, Call
from pipeline.adapters.registry_retry import Temporary
from pipeline.adapters.registry_session import Session
from pipeline.adapters.registry_url import registry_url
from pipeline.errors import IntegrityError, ServiceError
from pipeline.model.oci import Descriptor
from pipeline.model.reference import Reference

_RANGE = re.compile(r"bytes (\d{1,20})-(\d{1,20})/(\d{1,20}|\*)")


class BlobStream:
    """The transfer of one blob."""

    def __init__(self, session: Session, reference: Reference, blob: Descriptor, scope: Scope) -> None:
        self._session, self._blob, self._scope = session, blob, scope
        self._url = f"{registry_url(reference.registry)}/v2/{reference.repository}/blobs/{blob.digest}"
        self._where = str(reference.with_digest(blob.digest))
        self._hash = hashlib.sha256()
        self._done_bytes = 0

    def chunks(self) -> Iterator[bytes]:
        """The blob's bytes, once and in order; IntegrityError after the last when they are not the blob's."""
        attempts = self._session.attempts()
        while True:
            try:
                yield from self._transfer()
                break
            except Temporary as temporary:
                attempts.pause(temporary)
        found = "sha256:" + self._hash.hexdigest()
        if found != self._blob.digest:
            raise IntegrityError(f"the registry served other bytes: {found}", where=self._where)

    def _transfer(self) -> Iterator[bytes]:
        """What one request gives; Temporary when that is not all."""
        start = self._done_bytes
        headers = {"Range": f"bytes={start}-"} if start else {}
        call = Call("GET", self._url, self._where, headers, redirects=True)
        with self._session.open(call, self._scope, "read the blob", frozenset({200, 206})) as answer:
            rest = self._start(answer, start)
            for chunk in rest:
                self._done_bytes += len(chunk)
                if self._done_bytes > self._blob.size:
                    raise IntegrityError(f"a blob longer than its {self._blob.size} bytes", where=self._where)
                self._hash.update(chunk)
                yield chunk
        if self._done_bytes < self._blob.size:
            what = f"the transfer of a blob ended after {self._done_bytes} of {self._blob.size} bytes"
            raise Temporary(ServiceError(what, where=self._where))

    def _start(self, answer: Answer, start: int) -> Iterator[bytes]:
        """The body from `start` on, after its headers were found to fit."""
        offset = start if answer.status == 206 else 0
        if answer.status == 206:
            self._check_range(answer.header("Content-Range") or "", start)
        length = answer.header("Content-Length")
        if length is not None and length != str(self._blob.size - offset):
            raise IntegrityError(
                f"the registry announces {length[:20]} bytes of a blob of {self._blob.size}", where=self._where
            )
        received = self._received(answer)
        return received if offset == start else self._skip(received, start)

    def _received(self, answer: Answer) -> Iterator[bytes]:
        for chunk in answer.chunks(self._blob.size):
            self._session.meter.received(len(chunk))
            yield chunk

    def _check_range(self, text: str, start: int) -> None:
        match = _RANGE.fullmatch(text)
        if match is None or int(match[1]) != start or match[3] not in ("*", str(self._blob.size)):
            raise IntegrityError("the registry answers another range than asked for", where=self._where)

    def _skip(self, received: Iterator[bytes], start: int) -> Iterator[bytes]:
        """Drop the first `start` bytes, which must hash to what came before."""
        again = hashlib.sha256()
        left = start
        for chunk in received:
            head, rest = chunk[:left], chunk[left:]
            again.update(head)
            left -= len(head)
            if left:
                continue
            if again.digest() != self._hash.digest():
                raise IntegrityError("the registry serves other bytes the second time", where=self._where)
            if rest:
                yield rest
            yield from received
