"""A simulator of the registry ports, in memory, with faults that tests switch on.

One `Simulation` is the registry; `anonymous` and `publisher` are two clients of it, as the real ones are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from pipeline.errors import AbsentError, AccessError, HostileInputError, IntegrityError, ServiceError, StageError
from pipeline.model.oci import INDEX_TYPES, MANIFEST_TYPES, OCI_INDEX, Descriptor, Manifest, load_index
from pipeline.model.reference import Reference
from pipeline.ports import BlobStore, PushOutcome, ReferrerWays
from tests.fakes.registry_content import Content, Repository, make_index

Operation = str


@dataclass
class Faults:
    """What goes wrong. Digests in the sets are of blobs or manifests.

    `before` is called with the name of each operation (`push_blob`, `push_manifest`, `push_referrer`, `fetch_manifest`,
    `fetch_blob`, `fetch_referrers`, `fetch_referrer_ways`) and its reference: raise in it to die there.
    """

    is_down: bool = False
    is_private: bool = False
    denies_push: bool = False
    truncated: set[str] = field(default_factory=set)
    corrupted: set[str] = field(default_factory=set)
    lagging_tags: dict[str, str] = field(default_factory=dict)
    swapped_manifests: dict[str, str] = field(default_factory=dict)
    before: Callable[[Operation, Reference], None] = lambda operation, reference: None


@dataclass
class Simulation:
    """One registry host."""

    host: str = "registry.test"
    referrers_api: bool = False
    content: Content = field(default_factory=Content)
    faults: Faults = field(default_factory=Faults)
    operations: list[tuple[Operation, str]] = field(default_factory=list)

    @property
    def anonymous(self) -> SimulatedRegistry:
        """A client without credentials."""
        return SimulatedRegistry(self, may_push=False)

    @property
    def publisher(self) -> SimulatedRegistry:
        """A client with credentials."""
        return SimulatedRegistry(self, may_push=True)

    def enter(self, operation: Operation, reference: Reference, may_push: bool) -> Repository:
        """Everything that happens before an operation: record it, fail where a fault says so."""
        where = str(reference)
        self.operations.append((operation, where))
        self.faults.before(operation, reference)
        if reference.registry != self.host or self.faults.is_down:
            raise ServiceError(f"no connection to {reference.registry}", where=where)
        if self.faults.is_private and not may_push:
            raise AccessError("cannot read: the registry answered 401", where=where, remedy="the package is not public")
        if operation.startswith("push") and (not may_push or self.faults.denies_push):
            raise AccessError("cannot write: the registry answered 403 DENIED", where=where, remedy="log in")
        return self.content.repository(reference.repository)


class SimulatedRegistry:
    """`PushRegistry` over a simulation; without `may_push` every write is an AccessError."""

    def __init__(self, simulation: Simulation, *, may_push: bool) -> None:
        self._simulation, self._may_push = simulation, may_push
        self.received_bytes = self.sent_bytes = 0

    def fetch_manifest(self, reference: Reference) -> Manifest:
        repository = self._enter("fetch_manifest", reference)
        manifest = self._find(repository, reference)
        if manifest.media_type in INDEX_TYPES:
            entries = load_index(manifest.raw, str(reference)).manifests
            found = [
                e for e in entries if e.platform and (e.platform.os, e.platform.architecture) == ("linux", "amd64")
            ]
            if len(found) != 1:
                raise HostileInputError(f"an index with {len(found)} linux/amd64 entries", where=str(reference))
            manifest = self._find(repository, reference.with_digest(found[0].digest))
        if manifest.media_type not in MANIFEST_TYPES:
            raise HostileInputError("not a manifest", where=str(reference))
        return Manifest(manifest.raw, manifest.media_type)

    def fetch_blob(self, reference: Reference, blob: Descriptor) -> Iterator[bytes]:
        data = self._enter("fetch_blob", reference).blobs.get(blob.digest)
        if data is None:
            raise AbsentError(f"cannot read the blob: the registry answered 404 {blob.digest}", where=str(reference))
        faults = self._simulation.faults
        if blob.digest in faults.corrupted:
            data = bytes([data[0] ^ 1]) + data[1:]
        half = len(data) // 2
        for chunk in (data[:half],) if blob.digest in faults.truncated else (data[:half], data[half:]):
            self.received_bytes += len(chunk)
            yield chunk
        if blob.digest in faults.truncated:
            raise ServiceError(f"the transfer of a blob ended after {half} of {blob.size} bytes", where=str(reference))
        if blob.digest in faults.corrupted or len(data) != blob.size:
            raise IntegrityError("the registry served other bytes", where=str(reference))

    def fetch_referrers(self, reference: Reference) -> tuple[Descriptor, ...]:
        repository = self._enter("fetch_referrers", reference)
        if reference.digest is None:
            raise StageError("referrers belong to a digest, not to a tag", where=str(reference))
        if self._simulation.referrers_api:
            return self._listed(repository, reference.digest)
        return self._tagged(repository, reference.digest) or ()

    def fetch_referrer_ways(self, reference: Reference) -> ReferrerWays:
        repository = self._enter("fetch_referrer_ways", reference)
        if reference.digest is None:
            raise StageError("referrers belong to a digest, not to a tag", where=str(reference))
        api = self._listed(repository, reference.digest) if self._simulation.referrers_api else None
        return ReferrerWays(api, self._tagged(repository, reference.digest))

    def push_blob(
        self, reference: Reference, blob: Descriptor, source: BlobStore, mount_from: str | None
    ) -> PushOutcome:
        repository = self._enter("push_blob", reference)
        if blob.digest in repository.blobs:
            return "exists"
        if mount_from and (data := self._simulation.content.repository(mount_from).blobs.get(blob.digest)) is not None:
            repository.blobs[blob.digest] = data
            return "mounted"
        with source.open(blob.digest) as stream:
            data = stream.read()
        if len(data) != blob.size:
            raise StageError(f"a blob on disk has {len(data)} bytes, not {blob.size}", where=str(reference))
        self.sent_bytes += len(data)
        repository.blobs[blob.digest] = data
        return "uploaded"

    def push_manifest(self, reference: Reference, manifest: Manifest) -> None:
        self._put(self._enter("push_manifest", reference), reference, manifest)

    def push_referrer(self, reference: Reference, manifest: Manifest) -> None:
        repository = self._enter("push_referrer", reference)
        subject = manifest.view.subject
        if subject is None:
            raise StageError("a referrer without a subject", where=str(reference))
        self._put(repository, reference.with_digest(manifest.digest), manifest)
        if not self._simulation.referrers_api:
            entries = [Descriptor.model_validate(entry) for entry in repository.referrers(subject.digest)]
            repository.put(subject.digest.replace(":", "-"), make_index(*entries))

    def close(self) -> None:
        return

    def _enter(self, operation: Operation, reference: Reference) -> Repository:
        return self._simulation.enter(operation, reference, self._may_push)

    def _listed(self, repository: Repository, digest: str) -> tuple[Descriptor, ...]:
        return tuple(Descriptor.model_validate(entry) for entry in repository.referrers(digest))

    def _tagged(self, repository: Repository, digest: str) -> tuple[Descriptor, ...] | None:
        index = repository.find(digest.replace(":", "-"))
        return load_index(index.raw, digest).manifests if index else None

    def _find(self, repository: Repository, reference: Reference) -> Manifest:
        faults = self._simulation.faults
        selector = faults.lagging_tags.get(reference.selector, reference.selector)
        manifest = repository.find(faults.swapped_manifests.get(selector, selector))
        if manifest is None:
            raise AbsentError("cannot read the manifest: the registry answered 404", where=str(reference))
        self.received_bytes += len(manifest.raw)
        if reference.digest not in (None, manifest.digest):
            raise IntegrityError(f"the registry served {manifest.digest} for {reference.digest}", where=str(reference))
        own = json.loads(manifest.raw).get("mediaType", manifest.media_type)
        if own != manifest.media_type or manifest.media_type not in (*MANIFEST_TYPES, OCI_INDEX):
            raise HostileInputError("a manifest of another type", where=str(reference))
        return manifest

    def _put(self, repository: Repository, reference: Reference, manifest: Manifest) -> None:
        if reference.digest not in (None, manifest.digest):
            raise IntegrityError(f"a manifest {manifest.digest} under the name of another", where=str(reference))
        if missing := repository.missing_blobs(manifest):
            raise AbsentError(
                f"cannot write the manifest: 404 MANIFEST_BLOB_UNKNOWN {missing[0]}", where=str(reference)
            )
        self.sent_bytes += len(manifest.raw)
        repository.put(reference.selector, manifest)
