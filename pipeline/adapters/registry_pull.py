"""Reading a registry: manifests with their digests checked, blobs hashed while they stream, referrers both ways.

Every answer is hostile until its bytes hash to what was asked for. `AnonymousRegistry` is the reader that verification
uses: nothing in this module, or in what it imports, knows what a credential is.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from pipeline.adapters.registry_auth import Authorizer, Scope
from pipeline.adapters.registry_blob import BlobStream
from pipeline.adapters.registry_document import choose_platform, load_media_type, verify_media_type
from pipeline.adapters.registry_exchange import DEFAULT_LIMITS, Answer, Call, Limits
from pipeline.adapters.registry_referrers import (
    fallback_reference,
    load_entries,
    load_next,
    sort_referrers,
)
from pipeline.adapters.registry_retry import DEFAULT_BUDGET, SYSTEM_CLOCK, Clock, RetryBudget
from pipeline.adapters.registry_session import Session
from pipeline.adapters.registry_transport import REDIRECTS, Transport
from pipeline.adapters.registry_url import follow, load_origin, registry_url
from pipeline.errors import AbsentError, HostileInputError, IntegrityError
from pipeline.model.digest import digest_of
from pipeline.model.oci import (
    INDEX_TYPES,
    MANIFEST_TYPES,
    MAX_MANIFEST_BYTES,
    OCI_INDEX,
    Descriptor,
    Manifest,
    load_index,
)
from pipeline.model.reference import Reference
from pipeline.ports import ReferrerWays

ACCEPT = ", ".join((*MANIFEST_TYPES, *INDEX_TYPES))
MAX_PAGES = 100
# Registries without a referrers API say so in many ways; all of them mean "use the tag".
_NO_API = frozenset({400, 404, 405, 406}) | REDIRECTS


class RegistryReader:
    """`PullRegistry` over a session, whoever the session speaks for."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def received_bytes(self) -> int:
        """Body bytes of manifests and blobs that came over the wire so far, broken transfers of blobs included."""
        return self._session.meter.received_bytes

    def fetch_manifest(self, reference: Reference) -> Manifest:
        """Raw bytes, checked against the digest in the reference when it has one. An index resolves to linux/amd64.

        AbsentError when there is none, IntegrityError when bytes and digest differ, HostileInputError when the bytes
        are no manifest.
        """
        raw, media_type = self._fetch_document(reference)
        if media_type in INDEX_TYPES:
            entry = choose_platform(raw, str(reference))
            pinned = reference.with_digest(entry.digest)
            raw, media_type = self._fetch_document(pinned)
            if media_type != entry.media_type or len(raw) != entry.size:
                raise IntegrityError("a manifest differs from its entry in the index", where=str(pinned))
        if media_type not in MANIFEST_TYPES:
            raise HostileInputError(f"an index inside an index: {media_type}", where=str(reference))
        manifest = Manifest(raw, media_type)
        if manifest.view.schema_version != 2:
            raise HostileInputError("a manifest whose schemaVersion is not 2", where=str(reference))
        return manifest

    def fetch_blob(self, reference: Reference, blob: Descriptor) -> Iterator[bytes]:
        """Chunks as they arrive; resumes broken transfers; IntegrityError after the last when size or digest differ."""
        return BlobStream(self._session, reference, blob, self._scope(reference)).chunks()

    def fetch_referrers(self, reference: Reference) -> tuple[Descriptor, ...]:
        """Referrers of a manifest digest, from the API or, where there is none, from the `sha256-<hex>` tag."""
        fallback = fallback_reference(reference)
        found = self._session.run(lambda: self._fetch_pages(reference))
        return self._fetch_tagged(fallback) or () if found is None else found

    def fetch_referrer_ways(self, reference: Reference) -> ReferrerWays:
        """The same through the API and through the tag, each where it exists, to be compared."""
        fallback = fallback_reference(reference)
        return ReferrerWays(self._session.run(lambda: self._fetch_pages(reference)), self._fetch_tagged(fallback))

    def close(self) -> None:
        """Close idle connections."""
        self._session.close()

    def _scope(self, reference: Reference) -> Scope:
        return Scope(reference.registry, reference.repository)

    def _url(self, reference: Reference, rest: str) -> str:
        return f"{registry_url(reference.registry)}/v2/{reference.repository}/{rest}"

    def _fetch_document(self, reference: Reference) -> tuple[bytes, str]:
        return self._session.run(lambda: self._fetch_document_once(reference))

    def _fetch_document_once(self, reference: Reference) -> tuple[bytes, str]:
        where = str(reference)
        url = self._url(reference, f"manifests/{reference.selector}")
        call = Call("GET", url, where, {"Accept": ACCEPT}, redirects=True)
        with self._session.open(call, self._scope(reference), "read the manifest", frozenset({200})) as answer:
            raw = self._read(answer, MAX_MANIFEST_BYTES)
            served = answer.header("Docker-Content-Digest")
            media_type = load_media_type(answer.header("Content-Type"))
        wanted, found = reference.digest or served, digest_of(raw)
        if wanted is not None and wanted != found:
            raise IntegrityError(
                f"the registry served {found} for {wanted}", where=where, remedy="do not use this registry or mirror"
            )
        verify_media_type(raw, media_type, where)
        return raw, media_type

    def _read(self, answer: Answer, limit_bytes: int) -> bytes:
        raw = answer.read(limit_bytes)
        self._session.meter.received(len(raw))
        return raw

    def _fetch_tagged(self, fallback: Reference) -> tuple[Descriptor, ...] | None:
        raw = self._fetch_fallback(fallback)
        return sort_referrers(load_entries(raw, OCI_INDEX, str(fallback)), str(fallback)) if raw else None

    def _fetch_fallback(self, fallback: Reference) -> bytes | None:
        """Raw index under the fallback tag, or None when there is no such tag."""
        try:
            raw, media_type = self._fetch_document(fallback)
        except AbsentError:
            return None
        load_entries(raw, media_type, str(fallback))
        return raw

    def _fetch_pages(self, reference: Reference) -> tuple[Descriptor, ...] | None:
        """All pages of the referrers API; None when the registry has none."""
        where, found = str(reference), list[Descriptor]()
        first = url = self._url(reference, f"referrers/{reference.digest}")
        for _ in range(MAX_PAGES):
            call = Call("GET", url, where, {"Accept": OCI_INDEX})
            with self._session.open(call, self._scope(reference), "list the referrers", _NO_API | {200}) as answer:
                if answer.status != 200 or load_media_type(answer.header("Content-Type")) != OCI_INDEX:
                    if url != first:
                        raise HostileInputError("the list of referrers ends in the middle", where=where)
                    return None
                if answer.header("OCI-Filters-Applied"):
                    raise HostileInputError("referrers with a filter that nobody asked for", where=where)
                found += load_index(self._read(answer, MAX_MANIFEST_BYTES), where).manifests
                following = load_next(answer.header("Link"), where)
            sort_referrers(found, where)
            if following is None:
                return sort_referrers(found, where)
            url = _next_page(url, following, where)
        raise HostileInputError(f"more than {MAX_PAGES} pages of referrers", where=where)


class AnonymousRegistry(RegistryReader):
    """Reads what everybody may read. There is no way to give it a credential, and none that it could find one."""

    def __init__(
        self, *, limits: Limits = DEFAULT_LIMITS, budget: RetryBudget = DEFAULT_BUDGET, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        transport = Transport(limits)
        super().__init__(Session(transport, Authorizer(transport, clock), budget, clock))


def _next_page(current: str, following: str, where: str) -> str:
    """The next page's URL: the same list of the same registry, further on."""
    url = follow(current, following, where)
    same_list = urlsplit(url).path == urlsplit(current).path and load_origin(url, where) == load_origin(current, where)
    if not same_list or url == current:
        raise HostileInputError("the next page of referrers is not one of this list", where=where)
    return url
