"""The request that a release is submitted with, complete and explicit, out of its evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from pipeline.errors import StageError
from pipeline.model.digest import Digest, hex_of
from pipeline.model.record import Record, canonical_json
from pipeline.model.reference import load_reference
from pipeline.model.release import Budgets
from pipeline.report.facts import ImageFacts, ReleaseFacts
from pipeline.tasks import PlacedTask, place_tasks

FINISH_ACTION: dict[str, JsonValue] = {"operation": "finish"}
EXAMPLE_ACTIONS: tuple[dict[str, JsonValue], ...] = (
    {"operation": "shell", "command": "ls -la && git log --oneline | head -n 3"},
    {"operation": "shell", "command": "cat INSTRUCTIONS.md 2>/dev/null || git status --short"},
    FINISH_ACTION,
)


class SubmittedTask(Record):
    """A task with its image by digest; each budget is stated, none is left to a default."""

    task_id: str
    split: str
    image: str
    reset_wall_s: int
    rollout_wall_s: int
    verifier_wall_s: int
    tool_wall_s: int
    tool_calls_total: int
    tool_calls_per_minute: int
    completion_tokens: int
    context_tokens: int
    memory_gib: int
    cpu_floor_vcpus: int
    workspace_gib: int


class SubmittedDataset(Record):
    """What the tasks were taken from."""

    name: str
    revision: str
    license: str


class SubmittedSource(Record):
    """The repository and commit of the release, and the evidence that the request was made from."""

    repository: str
    revision: str
    evidence: Digest


class Submission(Record):
    """submission.json. `image` is the first task's; `schema` is what the images serve, action and observation."""

    submission_id: str
    name: str
    image: str
    schema_: dict[str, JsonValue]
    tasks: tuple[SubmittedTask, ...]
    example_actions: tuple[dict[str, JsonValue], ...]
    dataset: SubmittedDataset
    source: SubmittedSource
    server_port: int
    finish_action: dict[str, JsonValue]

    def to_request(self) -> dict[str, Any]:
        """The request as it is sent: `schema` under its own name, which a model cannot have as a field."""
        request = self.model_dump(mode="json")
        request["schema"] = request.pop("schema_")
        return request

    def to_bytes(self) -> bytes:
        """Canonical JSON of the request."""
        return canonical_json(self.to_request())


def make_submission(facts: ReleaseFacts, evidence: Digest) -> Submission:
    """The request; StageError when the evidence does not say enough, or images differ in what a request has once.

    `evidence` is the digest of evidence.json.
    """
    images = {image.id: image for image in facts.images}
    placed = placed_tasks(facts)
    inputs, revision = facts.inputs, revision_of(facts)
    tasks = tuple(_submit(task, images[task.image]) for task in placed)
    return Submission(
        submission_id=f"{inputs.release}-{inputs.target_name}-{hex_of(evidence)[:12]}",
        name=inputs.name or f"{inputs.source.rstrip('/').rpartition('/')[2]} {inputs.release}",
        image=tasks[0].image,
        schema_=_served_schema(facts.images),
        tasks=tasks,
        example_actions=EXAMPLE_ACTIONS,
        dataset=_dataset(facts, revision),
        source=SubmittedSource(repository=inputs.source, revision=revision, evidence=evidence),
        server_port=_server_port(facts.images),
        finish_action=FINISH_ACTION,
    )


def placed_tasks(facts: ReleaseFacts) -> tuple[PlacedTask, ...]:
    """All tasks in the order of the submission; StageError when the evidence names none."""
    placed = place_tasks(facts.inputs.tasks, {image.id: image.asked.task_ids for image in facts.images})
    if not placed:
        raise StageError("the evidence names no task", where="inputs.json", remedy="run: nox -s verify")
    return placed


def pinned_reference(image: ImageFacts) -> str:
    """Where the image is, by digest."""
    reference = load_reference(image.asked.reference, f"inputs.json: {image.id}")
    return str(reference.with_digest(image.manifest.digest))


def budgets_of(image: ImageFacts) -> Budgets:
    """What the release asked for; StageError when evidence of an earlier form does not say."""
    if image.asked.budgets is None:
        raise StageError(
            f"the evidence has no budgets for {image.id}", where="inputs.json", remedy="run: nox -s verify"
        )
    return image.asked.budgets


def revision_of(facts: ReleaseFacts) -> str:
    """The commit that the release was made from, as the provenance of its images attests it."""
    found = {attested_revision(image) for image in facts.images}
    if len(found) != 1:
        raise StageError(f"images of several revisions: {', '.join(sorted(found))}", where="provenance")
    return found.pop()


def attested_revision(image: ImageFacts) -> str:
    """The commit in the image's provenance; empty where it names none."""
    definition = image.predicate("provenance").get("buildDefinition")
    internal = definition.get("internalParameters") if isinstance(definition, Mapping) else None
    revision = internal.get("revision") if isinstance(internal, Mapping) else None
    return revision if isinstance(revision, str) else ""


def _submit(task: PlacedTask, image: ImageFacts) -> SubmittedTask:
    budgets = budgets_of(image).model_dump()
    return SubmittedTask(task_id=task.task_id, split=task.split, image=pinned_reference(image), **budgets)


def _dataset(facts: ReleaseFacts, revision: str) -> SubmittedDataset:
    named = facts.inputs.dataset
    if named is not None:
        return SubmittedDataset(name=named.name, revision=named.revision, license=named.licence)
    # tasks that were taken from nowhere else are the repository's own
    licences = sorted({image.asked.definition.licences for image in facts.images})
    return SubmittedDataset(name=facts.inputs.source, revision=revision, license=" AND ".join(licences))


def _served_schema(images: Sequence[ImageFacts]) -> dict[str, JsonValue]:
    served = [{name: image.schema.get(name) for name in ("action", "observation")} for image in images]
    for image, schema in zip(images, served, strict=True):
        if schema != served[0] or None in schema.values():
            raise StageError(
                "one request names one schema, and this image serves none or another",
                where=f"images/{image.id}/schema.json",
                remedy=f"serve action and observation as {images[0].id} does",
            )
    return served[0]


def _server_port(images: Sequence[ImageFacts]) -> int:
    ports = {image.asked.definition.runtime.port for image in images}
    if len(ports) != 1:
        raise StageError(f"one request names one port, and the images listen on {sorted(ports)}", where="inputs.json")
    return ports.pop()
