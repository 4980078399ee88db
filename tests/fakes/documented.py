"""Facts of releases that are written down in `releases/`, as evidence would show them once they were verified."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.config import load_release
from pipeline.model.digest import digest_of
from pipeline.plan import Plan, PlannedImage, make_plan
from pipeline.ports import Attested
from pipeline.report.documents import make_release_documents
from pipeline.report.facts import ImageFacts, ReleaseFacts
from pipeline.report.submission import Submission, make_submission
from tests.fakes import reported

ROOT = Path(__file__).parents[2]
LIMITS = (ROOT / "policies" / "arena-limits.json").read_bytes()
SCHEMA = json.loads((ROOT / "policies" / "openenv-schema.json").read_bytes())
EVIDENCE = digest_of(b"evidence.json")
REVISION = "c0ffee" + "0" * 34


def plan_of(name: str, target: str | None = None) -> Plan:
    """The plan of `releases/<name>.yaml`."""
    return make_plan(load_release(ROOT / "releases" / f"{name}.yaml"), target)


def facts_of(name: str, target: str | None = None, /, **inputs: Any) -> ReleaseFacts:
    """What evidence shows of it, with made-up layers; `inputs` replace fields of inputs.json."""
    plan = plan_of(name, target)
    facts = reported.release(*(_image(image) for image in plan.images), date=plan.release.file.release)
    file = plan.release.file
    asked = {
        "source": file.source, "target_name": plan.target_name, "target": plan.target, "name": file.name,
        "dataset": file.dataset, "tasks": file.tasks,
    }  # fmt: skip
    return replace(facts, inputs=facts.inputs.model_copy(update=asked | inputs))


def submission_of(name: str, target: str | None = None) -> Submission:
    """Its request."""
    return make_submission(facts_of(name, target), EVIDENCE)


def documents_of(name: str, target: str | None = None) -> dict[str, bytes]:
    """Its documents, without records."""
    return make_release_documents(facts_of(name, target), EVIDENCE, {}, LIMITS)


def change(facts: ReleaseFacts, image: str, schema: Any = None, **asked: Any) -> ReleaseFacts:
    """The same facts, with fields of one image's input or its served schema replaced."""

    def changed(one: ImageFacts) -> ImageFacts:
        if one.id != image:
            return one
        return replace(one, asked=one.asked.model_copy(update=asked), schema=one.schema if schema is None else schema)

    return replace(facts, images=tuple(map(changed, facts.images)))


def _image(planned: PlannedImage) -> ImageFacts:
    own = reported.layer(f"own layer of {planned.id}", 1_000 + len(planned.id))
    facts = reported.image(planned.id, (reported.DEBIAN, reported.RUNTIME, own))
    released = planned.source.released
    asked = {
        "reference": str(planned.reference), "pinned": planned.base_kind == "pinned", "task": planned.source.task,
        "published": released.published, "budgets": released.budgets, "task_ids": planned.source.task_ids,
    }  # fmt: skip
    if planned.base_kind == "pinned":
        asked["base"] = planned.base
    provenance = _with_revision(facts.attestations["provenance"])
    return replace(
        facts,
        asked=facts.asked.model_copy(update=asked),
        attestations={**facts.attestations, "provenance": provenance},
        schema=SCHEMA,
    )


def _with_revision(attested: Attested) -> Attested:
    predicate: Any = json.loads(json.dumps(attested.predicate))
    predicate["buildDefinition"]["internalParameters"]["revision"] = REVISION
    return replace(attested, predicate=predicate)
