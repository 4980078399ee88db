"""Writing a registry, with the credentials of that one registry: blobs, manifests, referrers."""

from __future__ import annotations

from pipeline.adapters.registry_auth import Scope
from pipeline.adapters.registry_credentials import CredentialedAuthorizer, Credentials
from pipeline.adapters.registry_exchange import DEFAULT_LIMITS, Call, Limits, make_body
from pipeline.adapters.registry_pull import RegistryReader
from pipeline.adapters.registry_referrers import (
    fallback_reference,
    load_entries,
    make_fallback_index,
    referrer_descriptor,
)
from pipeline.adapters.registry_retry import DEFAULT_BUDGET, SYSTEM_CLOCK, Clock, RetryBudget
from pipeline.adapters.registry_session import Session
from pipeline.adapters.registry_transport import Transport
from pipeline.adapters.registry_upload import BlobUpload
from pipeline.errors import AccessError, IntegrityError, ServiceError, StageError
from pipeline.model.oci import MAX_MANIFEST_BYTES, OCI_INDEX, Descriptor, Manifest
from pipeline.model.reference import Reference
from pipeline.ports import BlobStore, PushOutcome

SETTLE_S = 0.1
MAX_INDEX_ROUNDS = 8


class CredentialedRegistry(RegistryReader):
    """`PushRegistry` for the one registry that its credentials belong to; AccessError for any other."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        limits: Limits = DEFAULT_LIMITS,
        budget: RetryBudget = DEFAULT_BUDGET,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        transport = Transport(limits)
        super().__init__(Session(transport, CredentialedAuthorizer(transport, clock, credentials), budget, clock))
        self._registry = credentials.registry

    @property
    def sent_bytes(self) -> int:
        """Body bytes of manifests and blobs sent so far, broken transfers included."""
        return self._session.meter.sent_bytes

    def push_blob(
        self, reference: Reference, blob: Descriptor, source: BlobStore, mount_from: str | None
    ) -> PushOutcome:
        """Make the blob exist: already there, mounted from another repository of the registry, or uploaded.

        StageError when it is to be uploaded and `source` lacks it, IntegrityError when its bytes are not its digest's.
        """
        self._scope(reference)
        return self._session.run(BlobUpload(self._session, reference, blob, source, mount_from).attempt)

    def push_manifest(self, reference: Reference, manifest: Manifest) -> None:
        """Put raw bytes under the reference's tag or digest; IntegrityError when the registry reports another digest.

        AbsentError when the registry lacks a blob that the manifest names.
        """
        self._put(reference, manifest)

    def push_referrer(self, reference: Reference, manifest: Manifest) -> None:
        """Put a manifest with `subject` by digest, and maintain the fallback index where there is no referrers API."""
        subject = manifest.view.subject
        if subject is None:
            raise StageError("a referrer without a subject", where=str(reference))
        indexed = self._put(reference.with_digest(manifest.digest), manifest)
        if indexed is None:
            self._maintain_index(
                fallback_reference(reference.with_digest(subject.digest)), referrer_descriptor(manifest)
            )
        elif indexed != subject.digest:
            raise IntegrityError("the registry took the referrer for another subject", where=str(reference))

    def _scope(self, reference: Reference) -> Scope:
        if reference.registry != self._registry:
            raise AccessError(
                f"the credentials are for {self._registry} and are not used for {reference.registry}",
                where=str(reference),
                remedy="read other registries anonymously",
            )
        return Scope(reference.registry, reference.repository, push=True)

    def _put(self, reference: Reference, manifest: Manifest) -> str | None:
        """Put; returns the OCI-Subject that a registry with a referrers API answers."""
        where, raw = str(reference), manifest.raw
        if reference.digest not in (None, manifest.digest):
            raise IntegrityError(f"a manifest {manifest.digest} under the name of another", where=where)
        if len(raw) > MAX_MANIFEST_BYTES:
            raise StageError(f"a manifest of {len(raw)} bytes; the limit is {MAX_MANIFEST_BYTES}", where=where)
        url = self._url(reference, f"manifests/{reference.selector}")
        headers = {"Content-Type": manifest.media_type}
        call = Call("PUT", url, where, headers, lambda: make_body(raw, self._session.meter))
        return self._session.run(lambda: self._put_once(call, self._scope(reference), manifest.digest))

    def _put_once(self, call: Call, scope: Scope, digest: str) -> str | None:
        with self._session.open(call, scope, "write the manifest", frozenset({201})) as answer:
            stored = answer.header("Docker-Content-Digest")
            if stored is not None and stored != digest:
                raise IntegrityError(f"the registry stored {stored[:80]} instead of {digest}", where=call.where)
            return answer.header("OCI-Subject")

    def _maintain_index(self, tag: Reference, entry: Descriptor) -> None:
        """Read, add, write, and read again until the entry is there: a tag has no compare-and-swap.

        The pause lets a writer that read before us finish, so that what it overwrote is seen to be missing; everything
        that was once seen is written back with ours.
        """
        known = {entry.digest: entry}
        for round_ in range(MAX_INDEX_ROUNDS):
            raw = self._fetch_fallback(tag)
            found = {e.digest: e for e in load_entries(raw, OCI_INDEX, str(tag))} if raw else {}
            if known.keys() <= found.keys() and found[entry.digest] == entry:
                return
            known = {**found, **known}
            self._put(tag, make_fallback_index(known.values(), raw, str(tag)))
            self._session.clock.sleep(SETTLE_S * (1 + round_) * (0.5 + self._session.clock.jitter()))
        raise ServiceError(
            "another writer keeps replacing the list of referrers",
            where=str(tag),
            remedy="let the other release finish, then run publish again",
        )
