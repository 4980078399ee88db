"""JSON Schemas of the declarative files, for editors and for people who write them: generated, checked in, current."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pipeline.model.release import ImageDefinition, Policy, ReleaseFile, Section, TaskDefinition

_MODELS: Mapping[str, type[Section]] = {
    "release.schema.json": ReleaseFile,
    "image.schema.json": ImageDefinition,
    "task.schema.json": TaskDefinition,
    "policy.schema.json": Policy,
}
FOLDER = "docs/schemas"


def make_schemas() -> dict[str, bytes]:
    """File name -> bytes, as they are checked in under docs/schemas."""
    return {name: _render(model) for name, model in _MODELS.items()}


def _render(model: type[Section]) -> bytes:
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema(by_alias=True)}
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False).encode() + b"\n"
