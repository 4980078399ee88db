"""One blob made to exist: there already, mounted from another repository, or uploaded in one piece from disk.

https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pushing-blobs
"""

from __future__ import annotations

import hashlib
import os
from typing import BinaryIO
from urllib.parse import quote, urlencode, urlsplit

from pipeline.adapters.registry_auth import Scope
from pipeline.adapters.registry_exchange import Answer, Body, Call, make_body
from pipeline.adapters.registry_session import Session
from pipeline.adapters.registry_url import follow, registry_url
from pipeline.errors import HostileInputError, IntegrityError, StageError
from pipeline.model.oci import Descriptor
from pipeline.model.reference import Reference
from pipeline.ports import BlobStore, PushOutcome

_BINARY = "application/octet-stream"


class BlobUpload:
    """Repeatable: every attempt first asks whether the blob is there by now."""

    def __init__(
        self, session: Session, reference: Reference, blob: Descriptor, source: BlobStore, mount_from: str | None
    ) -> None:
        self._session, self._blob, self._source = session, blob, source
        self._mount_from = mount_from if mount_from != reference.repository else None
        self._scope = Scope(reference.registry, reference.repository, push=True, mount_from=self._mount_from)
        self._root = f"{registry_url(reference.registry)}/v2/{reference.repository}/blobs"
        self._where = str(reference.with_digest(blob.digest))
        self._sent = False

    def attempt(self) -> PushOutcome:
        """One try: 1. is it there, 2. mount, or begin an upload, 3. send the bytes."""
        if self._exists():
            return "uploaded" if self._sent else "exists"
        location = self._begin()
        if location is None:
            return "mounted"
        self._send(location)
        return "uploaded"

    def _exists(self) -> bool:
        call = Call("HEAD", f"{self._root}/{self._blob.digest}", self._where, redirects=True)
        with self._session.open(call, self._scope, "look for the blob", frozenset({200, 404})) as answer:
            length = answer.header("Content-Length")
            if answer.status == 200 and length is not None and length != str(self._blob.size):
                raise IntegrityError(
                    f"the registry has this blob with {length[:20]} bytes, not {self._blob.size}", where=self._where
                )
            return answer.status == 200

    def _begin(self) -> str | None:
        """URL to send the bytes to, or None when the registry mounted the blob instead."""
        query = f"?{urlencode({'mount': self._blob.digest, 'from': self._mount_from})}" if self._mount_from else ""
        call = Call("POST", f"{self._root}/uploads/{query}", self._where, body=lambda: make_body(b""))
        with self._session.open(call, self._scope, "upload a blob", frozenset({201, 202})) as answer:
            self._check_digest(answer)
            if answer.status == 201:
                if not self._mount_from:
                    raise HostileInputError("the registry mounted a blob that nobody asked to mount", where=self._where)
                return None
            return follow(call.url, answer.header("Location") or "", self._where)

    def _send(self, location: str) -> None:
        url = f"{location}{'&' if urlsplit(location).query else '?'}digest={quote(self._blob.digest, safe='')}"
        with self._source.open(self._blob.digest) as stream:
            self._check_size(stream)
            sent = hashlib.sha256()

            def make_upload() -> Body:
                nonlocal sent
                stream.seek(0)
                sent = hashlib.sha256()
                return Body(stream, self._blob.size, self._session.meter, lambda piece: sent.update(piece))

            call = Call("PUT", url, self._where, {"Content-Type": _BINARY}, make_upload)
            self._sent = True
            with self._session.open_at(call, self._scope, "upload a blob", frozenset({201}), self._root) as answer:
                self._check_digest(answer)
        if f"sha256:{sent.hexdigest()}" != self._blob.digest:
            raise IntegrityError("a blob on disk is not what its name says", where=self._where, remedy="build again")

    def _check_size(self, stream: BinaryIO) -> None:
        found = stream.seek(0, os.SEEK_END)
        if found != self._blob.size:
            raise StageError(
                f"a blob on disk has {found} bytes, not {self._blob.size}", where=self._where, remedy="build again"
            )

    def _check_digest(self, answer: Answer) -> None:
        digest = answer.header("Docker-Content-Digest")
        if answer.status == 201 and digest is not None and digest != self._blob.digest:
            raise IntegrityError(f"the registry stored {digest[:80]} instead", where=self._where)
