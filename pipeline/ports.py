"""What the stages need from the world, one Protocol a thing. `adapters/` has the real ones, `tests/fakes/` simulators.

Each port has one contract suite under `tests/contract/` that the real adapter and the fake both pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

from pydantic import JsonValue

from pipeline.model.oci import Descriptor, Manifest
from pipeline.model.reference import Reference

PushOutcome = Literal["exists", "mounted", "uploaded"]


@dataclass(frozen=True)
class ReferrerWays:
    """Both ways to the referrers of one digest, sorted by digest. None where the registry has no API, or no tag."""

    api: tuple[Descriptor, ...] | None
    tag: tuple[Descriptor, ...] | None


class BlobStore(Protocol):
    """Content-addressed blobs of one image on disk (an OCI image layout). Writes are atomic and verified."""

    def has(self, digest: str) -> bool:
        """Whether the blob is complete here."""

    def open(self, digest: str) -> BinaryIO:
        """The blob's compressed bytes; StageError when it is absent."""

    def write(self, chunks: Iterator[bytes], expected: Descriptor) -> None:
        """Hash while writing; IntegrityError unless size and digest are as expected. Nothing stays after a failure."""

    def write_bytes(self, data: bytes) -> str:
        """Store small content; returns its digest."""

    def path(self, digest: str) -> Path:
        """The file of a blob that is here."""


class PullRegistry(Protocol):
    """A registry that is read. The anonymous one has no path to any credential."""

    def fetch_manifest(self, reference: Reference) -> Manifest:
        """Raw bytes, checked against the digest in the reference when it has one. An index resolves to linux/amd64."""

    def fetch_blob(self, reference: Reference, blob: Descriptor) -> Iterator[bytes]:
        """Chunks as they arrive; raises IntegrityError after the last one when size or digest differ."""

    def fetch_referrers(self, reference: Reference) -> tuple[Descriptor, ...]:
        """Referrers of a manifest digest, from the API or, where there is none, from the `sha256-<hex>` tag."""

    def fetch_referrer_ways(self, reference: Reference) -> ReferrerWays:
        """The same through the API and through the tag, each where it exists, to be compared."""

    @property
    def received_bytes(self) -> int:
        """Body bytes that came over the wire so far, blobs and manifests."""


class PushRegistry(PullRegistry, Protocol):
    """A registry that is written, with credentials of its own."""

    def push_blob(
        self, reference: Reference, blob: Descriptor, source: BlobStore, mount_from: str | None
    ) -> PushOutcome:
        """Make the blob exist: already there, mounted from another repository of the registry, or uploaded."""

    def push_manifest(self, reference: Reference, manifest: Manifest) -> None:
        """Put raw bytes under a tag or digest; IntegrityError when the registry reports another digest."""

    def push_referrer(self, reference: Reference, manifest: Manifest) -> None:
        """Put a manifest with `subject` by digest, and maintain the fallback index where there is no referrers API."""

    @property
    def sent_bytes(self) -> int:
        """Body bytes sent so far."""


@dataclass(frozen=True)
class ExecResult:
    """What a command in a container gave."""

    exit_code: int
    output: bytes


@dataclass(frozen=True)
class ContainerLimits:
    """Of a verification container."""

    memory_bytes: int = 4 << 30
    cpus: float = 2.0
    pids: int = 512


class Container(Protocol):
    """One running verification container."""

    @property
    def id(self) -> str:
        """The engine's id."""

    @property
    def url(self) -> str:
        """http://127.0.0.1:<port> of the image's server."""

    def exec(self, argv: Sequence[str], *, user: str = "0:0", timeout_s: float = 60, stdin: bytes = b"") -> ExecResult:
        """Run argv inside, for observation only."""

    def memory_bytes(self) -> int:
        """Resident memory of the container, without page cache."""

    def writable_bytes(self) -> int:
        """What the container has written over its image."""

    def stop(self, timeout_s: int = 10) -> float:
        """Send the stop signal; seconds until it had exited."""

    def remove(self) -> None:
        """Kill and remove, with its volumes."""


class Engine(Protocol):
    """A Docker engine. Everything made carries the pipeline's label; only labelled things are removed."""

    def load(self, store: BlobStore, manifest: Manifest, name: str) -> str:
        """Import exactly the store's bytes; returns the image id, checked to be the config's digest."""

    def pull(self, reference: Reference) -> str:
        """Pull by digest as a person would, with an empty config folder; returns the image id."""

    def remove_image(self, image_id: str) -> None:
        """Remove an image that this pipeline loaded or pulled, when present."""

    def run(self, image_id: str, *, name: str, limits: ContainerLimits) -> AbstractContextManager[Container]:
        """Start with a published loopback port; removed on leaving, whatever happened."""

    def remove_leftovers(self) -> int:
        """Remove every container and network that a killed run of this pipeline left; returns how many."""


@dataclass(frozen=True)
class Attested:
    """A verified bundle: what it says, about which digest (the first of several), and when it was logged."""

    predicate_type: str
    subject_digest: str
    predicate: JsonValue
    signed_at: str
    identity: str
    issuer: str
    bundle: bytes


class Signer(Protocol):
    """Makes Sigstore bundles with an identity that the target names."""

    def sign(self, statement: bytes) -> bytes:
        """An in-toto statement (JSON bytes) -> a Sigstore bundle v0.3 (JSON bytes), timestamped and logged."""


class BundleVerifier(Protocol):
    """Checks bundles against one trusted root and one expected identity, offline."""

    def verify(self, bundle: bytes, *, subject_digest: str, predicate_type: str) -> Attested:
        """Numbered steps; IntegrityError says which failed. Subject, types, timestamp, identity and log all count."""

    def verify_joint(self, bundle: bytes, *, subject_digests: Sequence[str], predicate_type: str) -> Attested:
        """The same for a statement about several digests: exactly these, in this order."""


class Arena(Protocol):
    """One WebSocket to an environment server: an episode, as a consumer plays it."""

    def reset(self, task_id: str | None = None, seed: int | None = None) -> Mapping[str, JsonValue]:
        """The whole `observation` reply `data`: observation, reward, done. ArenaReplyError for an error reply."""

    def shell(self, command: str) -> Mapping[str, JsonValue]:
        """One shell action's reply."""

    def finish(self) -> Mapping[str, JsonValue]:
        """The terminal reply."""

    def exchange(self, frame: str | bytes, timeout_s: float = 130) -> Mapping[str, JsonValue]:
        """Send any frame, return the raw reply object; for protocol checks."""

    def close(self) -> None:
        """Close the socket."""


class Reporter(Protocol):
    """What people see while it runs: progress on a terminal, plain lines elsewhere."""

    def step(self, text: str, total: int | None = None) -> AbstractContextManager[Callable[[int], None]]:
        """A long step; the value is called with what was done since the last call (bytes, checks)."""

    def note(self, text: str) -> None:
        """One line."""
