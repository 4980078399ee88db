"""The records that make up an evidence folder.

Primary files are what verify saw: raw manifests, configs, bundles, results of checks and scans. Everything else in the
folder (sizes, agreement, verdicts, state, reports) follows from them and is computed again by `nox -s review`.
"""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from pipeline.model.digest import Digest
from pipeline.model.record import Record
from pipeline.model.release import (
    Budgets,
    Dataset,
    Date,
    ImageDefinition,
    Name,
    Policy,
    PublishedOrigin,
    Target,
    TaskDefinition,
    TaskGroup,
)
from pipeline.model.stages import AttestationKind

StateName = Literal["publication", "local checks", "anonymous replay", "admission", "training", "private evaluation"]
StateValue = Literal["done", "failed", "not performed"]


class ImageInput(Record):
    """What the release asked for of one image."""

    image: str
    reference: str
    pinned: bool
    base: str
    definition: ImageDefinition
    task: TaskDefinition | None
    published: PublishedOrigin | None = None
    budgets: Budgets | None = None
    task_ids: tuple[str, ...] = ()


class EvidenceInputs(Record):
    """inputs.json: the declarative files as they were, so that later edits do not change what was promised."""

    kind: Literal["evidence-inputs/v1"] = "evidence-inputs/v1"
    release: str
    source: str
    target_name: str
    target: Target
    images: tuple[ImageInput, ...]
    policies: tuple[Policy, ...]
    name: str | None = None
    dataset: Dataset | None = None
    tasks: tuple[TaskGroup, ...] = ()


class PulledBlob(Record):
    """One blob as it came over the wire, from a client without credentials into an empty store; sizes in bytes."""

    digest: Digest
    size: int
    received_bytes: int


class Pull(Record):
    """pull.json: what the tag named, and every blob of it."""

    reference: str
    tag_digest: Digest
    blobs: tuple[PulledBlob, ...]
    engine_image_id: Digest
    person_pull_image_id: Digest


class Disagreement(Record):
    """A check, report or scan of a layer that was not the same before publication and after the pull."""

    check: str
    before: str
    after: str


class Agreement(Record):
    """agreement.json: the two runs of the suite, check by check, and the two scans, layer by layer."""

    image: str
    before_passed: int
    before_failed: int
    after_passed: int
    after_failed: int
    disagreements: tuple[Disagreement, ...]


class State(Record):
    """state.json: six states kept apart. Nothing in this repository performs the last three."""

    states: dict[StateName, StateValue]


class EvidenceFile(Record):
    """A file of the folder; size in bytes."""

    path: str
    digest: Digest
    size: int


class EvidenceIndex(Record):
    """evidence.json: every other file of the folder. A file that is not here, or differs, fails the review."""

    kind: Literal["evidence/v1"] = "evidence/v1"
    release: str
    target: str
    verdict: Literal["passed", "failed"]
    images: dict[str, Digest]
    files: tuple[EvidenceFile, ...]


class Verdicts(Record):
    """policies.json: what every policy says of the release, as plain JSON of checks.evaluate.Verdict."""

    verdicts: tuple[JsonValue, ...]


class ServedSchema(Record):
    """schema.json: the documents that the image's /schema serves, by name."""

    documents: dict[str, JsonValue]


class SnapshotLayer(Record):
    """A distinct layer of a release; size in compressed bytes, and the ids of the images that have it."""

    digest: Digest
    size: int
    images: tuple[str, ...]


class SnapshotPackage(Record):
    """One version of a package: `ecosystem` is a package URL's type (deb, pypi), licences as the SBOM writes them."""

    ecosystem: str
    name: str
    version: str
    licences: tuple[str, ...]
    images: tuple[str, ...]


class SnapshotChecks(Record):
    """The checks of one image after the pull: ids that passed, and outcome by id of the rest."""

    image: str
    passed: tuple[str, ...]
    others: dict[str, str]


class SnapshotPolicy(Record):
    """A policy's outcome; `rule` is the digest of its whole definition, so that a loosened rule shows."""

    policy: str
    outcome: str
    rule: Digest


class SnapshotImage(Record):
    """An image, its manifest, and its size in compressed bytes."""

    image: str
    manifest_digest: Digest
    compressed_bytes: int


class Snapshot(Record):
    """What two releases are compared by. Release and target name a folder of evidence, so they are no free text."""

    release: Date
    target: Name
    passed: bool
    identity: str
    issuer: str
    images: tuple[SnapshotImage, ...]
    layers_once_bytes: int
    layers: tuple[SnapshotLayer, ...]
    packages: tuple[SnapshotPackage, ...]
    checks: tuple[SnapshotChecks, ...]
    policies: tuple[SnapshotPolicy, ...]


class PreviousRelease(Record):
    """previous.json: the release before, as it was when this one was written; `index` is of its evidence.json."""

    kind: Literal["previous-release/v1"] = "previous-release/v1"
    index: Digest
    snapshot: Snapshot


PREVIOUS = "previous.json"
RELEASE_BUNDLE = "release.sigstore.json"
ATTESTATION_PATH = "images/{image}/attestations/{kind}.sigstore.json"


def attestation_path(image: str, kind: AttestationKind) -> str:
    """Where a bundle lies in an evidence folder."""
    return ATTESTATION_PATH.format(image=image, kind=kind)
