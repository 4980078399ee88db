"""docs/formats.md explains every key of every file that it is about."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from pipeline.model.release import ImageDefinition, Policy, ReleaseFile, TaskDefinition
from pipeline.report.admission import Admission
from pipeline.report.diagnosis import TrainingDiagnosis
from pipeline.report.documents import ReleaseProvenance, TaskLine
from pipeline.report.submission import Submission

TEXT = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()


def models_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in models_in(argument)]


def keys_of(model: type[BaseModel]) -> set[str]:
    found = {name.rstrip("_") for name in model.model_fields}
    for field in model.model_fields.values():
        for inner in models_in(field.annotation):
            found |= keys_of(inner)
    return found


@pytest.mark.parametrize(
    "model",
    [ReleaseFile, ImageDefinition, TaskDefinition, Policy, TaskLine, ReleaseProvenance, Submission, Admission,
     TrainingDiagnosis],
)  # fmt: skip
def test_every_key_is_explained(model: type[BaseModel]) -> None:
    explained = set(re.findall(r"`(\w+)`", TEXT))
    assert keys_of(model) - explained - {"kind", "first", "last"} == set()
