"""The documents that go with a release: tasks, provenance, the request, and whether it would be admitted.

All of it follows from verified evidence, the original task records, and the consumer's limits; the last two are kept
beside the documents, so that a review computes everything again from the folder alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import JsonValue

from pipeline.model.digest import Digest, digest_of
from pipeline.model.evidence import ImageInput
from pipeline.model.record import Record
from pipeline.model.release import Budgets
from pipeline.report.admission import check_admission
from pipeline.report.facts import ImageFacts, ReleaseFacts
from pipeline.report.submission import attested_revision, budgets_of, make_submission, pinned_reference, placed_tasks

LIMITS, ADMISSION, PROVENANCE, SUBMISSION, TASKS = (
    "arena-limits.json",
    "admission.json",
    "provenance.json",
    "submission.json",
    "tasks.jsonl",
)
RECORD_PATH = "tasks/{task_id}.json"


class TaskLine(Record):
    """A line of tasks.jsonl; `ordinal` counts from 0. None is unknown: nobody recorded it.

    `source_image` is what the image was made from, `source_revision` the commit of what was added to it.
    """

    ordinal: int
    task_id: str
    split: str
    image_id: str
    image: str
    record_sha256: str | None
    source_image: str | None
    source_revision: str | None
    budgets: Budgets
    evidence: Digest


class ImageProvenance(Record):
    """One image: what it is, what it was made from, and the attested SLSA provenance, whole."""

    image_id: str
    image: str
    pinned: bool
    title: str
    config_digest: Digest
    layers: tuple[Digest, ...]
    compressed_bytes: int
    task_ids: tuple[str, ...]
    record_sha256: str | None
    source_image: str | None
    source_revision: str | None
    signed_by: str
    signed_at: str
    provenance: dict[str, JsonValue]


class ReleaseProvenance(Record):
    """provenance.json: all images of a release."""

    kind: Literal["release-provenance/v1"] = "release-provenance/v1"
    evidence: Digest
    release: str
    target: str
    source: str
    images: tuple[ImageProvenance, ...]


def make_release_documents(
    facts: ReleaseFacts, evidence: Digest, records: Mapping[str, bytes], limits: bytes
) -> dict[str, bytes]:
    """Path -> bytes of every document; the same arguments give the same bytes.

    `evidence` is the digest of evidence.json, `records` are task records by task id whose digests the caller checked,
    `limits` is arena-limits.json. StageError when the evidence does not say enough.
    """
    submission = make_submission(facts, evidence)
    return {
        TASKS: b"".join(line.to_bytes() for line in make_task_lines(facts, evidence)),
        PROVENANCE: _make_provenance(facts, evidence).to_bytes(),
        SUBMISSION: submission.to_bytes(),
        ADMISSION: check_admission(submission, facts.images, limits, LIMITS).to_bytes(),
        LIMITS: limits,
        **{RECORD_PATH.format(task_id=task_id): record for task_id, record in records.items()},
    }


def make_task_lines(facts: ReleaseFacts, evidence: Digest) -> tuple[TaskLine, ...]:
    """tasks.jsonl, in the order of the submission."""
    images = {image.id: image for image in facts.images}
    return tuple(
        TaskLine(
            ordinal=ordinal,
            task_id=placed.task_id,
            split=placed.split,
            image_id=placed.image,
            image=pinned_reference(images[placed.image]),
            record_sha256=record_sha256(images[placed.image].asked),
            source_image=_source_image(images[placed.image].asked),
            source_revision=_source_revision(images[placed.image]),
            budgets=budgets_of(images[placed.image]),
            evidence=evidence,
        )
        for ordinal, placed in enumerate(placed_tasks(facts))
    )


def record_sha256(asked: ImageInput) -> str | None:
    """SHA-256 of the record in the image, in hex: ours where we built it, its publisher's word where it is pinned."""
    if asked.pinned:
        return asked.published.record_sha256 if asked.published is not None else None
    return asked.task.record_sha256 if asked.task is not None else None


def record_digests(facts: ReleaseFacts) -> dict[str, Digest]:
    """Task id -> digest of its record, for the tasks that have one."""
    found = {image.asked.task_ids[0]: record_sha256(image.asked) for image in facts.images if image.asked.task_ids}
    return {task_id: f"sha256:{sha256}" for task_id, sha256 in found.items() if sha256 is not None}


def names_evidence(raw: bytes, evidence: Digest) -> bool:
    """Whether a document names that evidence.json, in whichever place it does."""
    return evidence.encode() in raw


def limits_agree(admission: bytes, limits: bytes) -> bool:
    """Whether admission.json was made with these limits."""
    return digest_of(limits).encode() in admission


def _make_provenance(facts: ReleaseFacts, evidence: Digest) -> ReleaseProvenance:
    return ReleaseProvenance(
        evidence=evidence,
        release=facts.inputs.release,
        target=facts.inputs.target_name,
        source=facts.inputs.source,
        images=tuple(map(_image_provenance, facts.images)),
    )


def _image_provenance(image: ImageFacts) -> ImageProvenance:
    asked, attested = image.asked, image.attestations["provenance"]
    published = asked.published if asked.pinned else None
    return ImageProvenance(
        image_id=image.id,
        image=pinned_reference(image),
        pinned=asked.pinned,
        title=published.title if published else asked.task.title if asked.task else asked.definition.title,
        config_digest=image.config.digest,
        layers=tuple(layer.digest for layer in image.manifest.view.layers),
        compressed_bytes=image.manifest.compressed_bytes,
        task_ids=asked.task_ids,
        record_sha256=record_sha256(asked),
        source_image=_source_image(asked),
        source_revision=_source_revision(image),
        signed_by=attested.identity,
        signed_at=attested.signed_at,
        provenance=image.predicate("provenance"),
    )


def _source_image(asked: ImageInput) -> str | None:
    if asked.pinned:
        return asked.published.source_image if asked.published is not None else None
    return asked.base or None


def _source_revision(image: ImageFacts) -> str | None:
    if image.asked.pinned:
        return image.asked.published.source_revision if image.asked.published is not None else None
    return attested_revision(image) or None
