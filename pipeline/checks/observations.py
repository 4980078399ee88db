"""Everything that a check may look at. Stages fill it; a value that could not be had is None, never a guess."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from pipeline.model.digest import digest_of
from pipeline.model.finding import CheckReport, Finding, Severity
from pipeline.model.oci import ImageConfig, Manifest
from pipeline.model.record import canonical_json
from pipeline.model.release import Identity, ImageDefinition
from pipeline.ports import Attested

Stage = Literal["build", "verify"]
Reach = Literal["reachable", "protected", "buried"]


@dataclass(frozen=True)
class ScanFinding:
    """One leak: who can get at it, what it is (future, fixture, unrelated, unreadable), where, and in which layer."""

    reach: Reach
    kind: str
    path: str
    layer: str


@dataclass(frozen=True)
class ScanSummary:
    """What the leak scan saw: findings, whether it read everything, and the digests of the layers that it read."""

    findings: tuple[ScanFinding, ...]
    complete: bool
    layers: tuple[str, ...]


@dataclass(frozen=True)
class ImageObservation:
    """One image of a release.

    `built` is False for an image that is pinned and served as it is. `definition` is its image.yaml. `base_reference`
    is what it was derived from, as written; `base_digest` the digest that was used. `provenance` is SLSA's predicate.
    `schemas` has the digest of each document that /schema serves, from `schema_digests`. `before` and `after` are the
    behavioural reports before publication and after the pull; `attested` the verified attestations.
    """

    id: str
    built: bool
    definition: ImageDefinition
    manifest: Manifest
    config: ImageConfig
    base_reference: str
    base_digest: str
    sbom: bytes | None = None
    provenance: Mapping[str, JsonValue] | None = None
    scan: ScanSummary | None = None
    before: CheckReport | None = None
    after: CheckReport | None = None
    attested: tuple[Attested, ...] = ()
    schemas: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Id and manifest digest."""
        return f"{self.id}@{self.manifest.digest}"

    def finding(
        self, check: str, what: str, *, where: str = "", remedy: str = "", severity: Severity = "error"
    ) -> Finding:
        """A finding about this image; `where` is the place inside it."""
        place = f"{self.name}: {where}" if where else self.name
        return Finding(
            check=check, what=what, where=place, remedy=remedy, digest=self.manifest.digest, severity=severity
        )


@dataclass(frozen=True)
class ReleaseObservation:
    """All images of a release, as a stage sees them. `identity` is the one that the target says signs."""

    stage: Stage
    images: tuple[ImageObservation, ...]
    identity: Identity


def schema_digests(served: Mapping[str, JsonValue]) -> dict[str, str]:
    """Name of each document in a /schema reply -> digest of its canonical JSON: key order is no difference."""
    return {name: digest_of(canonical_json(document)) for name, document in sorted(served.items())}
