"""The checked-in JSON Schemas are those of the models, and they accept the files of this repository."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from pipeline.schemas import FOLDER, make_schemas
from pipeline.strict_yaml import load_document

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("name", "raw"), sorted(make_schemas().items()))
def test_checked_in_schema_is_current(name: str, raw: bytes) -> None:
    assert (ROOT / FOLDER / name).read_bytes() == raw, "run: nox -s schemas"


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [
        ("release.schema.json", "release.yaml"),
        ("image.schema.json", "images/*/image.yaml"),
        ("task.schema.json", "images/*/tasks/*/task.yaml"),
        ("policy.schema.json", "policies/*.yaml"),
    ],
)
def test_schema_accepts_every_file_and_refuses_an_unknown_key(schema: str, pattern: str) -> None:
    validator = jsonschema.Draft202012Validator(json.loads((ROOT / FOLDER / schema).read_text()))
    paths = sorted(ROOT.glob(pattern))
    assert paths
    for path in paths:
        value = load_document(path.read_bytes(), path.name).value
        validator.validate(value)
        assert isinstance(value, dict)
        with pytest.raises(jsonschema.ValidationError, match="unexpected"):
            validator.validate({**value, "unknown": 1})
