"""The pipeline's own SBOM lists what is installed, is valid, and is the same each time."""

from __future__ import annotations

import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from pipeline.adapters.sbom import make_environment_sbom
from pipeline.errors import PipelineError
from pipeline.sbom.view import check_schema, load_sbom


def test_the_environment_that_runs_this() -> None:
    raw = make_environment_sbom()
    assert check_schema(raw) == []
    listed = {(canonicalize_name(each.name), each.version) for each in load_sbom(raw, "own").components}
    assert listed == {(canonicalize_name(each.name), each.version) for each in distributions()}
    assert sys.prefix.encode() not in raw
    assert make_environment_sbom(Path(sys.executable)) == raw


def test_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PipelineError) as caught:
        make_environment_sbom(tmp_path / "python")
    assert "cyclonedx-bom failed" in caught.value.what
