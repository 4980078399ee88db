"""The verb that scans any layout: what it accepts, and what it refuses before it reads a layer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from pipeline.__main__ import main
from tests.fakes.release import REPAIR, TinyWorld

NO_ENVIRONMENT: Mapping[str, str] = {}
ABSENT = "0" * 39 + "1"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> TinyWorld:
    made = TinyWorld(tmp_path_factory.mktemp("scanned") / "release")
    made.build()
    return made


def scan(folder: Path, *arguments: str) -> int:
    return main(["scan", str(folder), *arguments], NO_ENVIRONMENT)


def test_a_layout_is_scanned_as_a_table_or_a_record(built: TinyWorld, capsys: pytest.CaptureFixture[str]) -> None:
    folder = built.layout(REPAIR).folder
    assert scan(folder) == 0
    assert capsys.readouterr().out.endswith("findings: 0 reachable, 0 protected, 0 buried\n")
    assert scan(folder, "--json") == 0
    assert json.loads(capsys.readouterr().out)["leaks"] == []


@pytest.mark.parametrize("text", ["", "abc", "main", "G" * 40, "a" * 41, "a" * 40 + "\n"])
def test_what_is_no_commit_id_is_refused(built: TinyWorld, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert scan(built.layout(REPAIR).folder, "--base-commit", text) == 64
    assert "40 hex digits" in capsys.readouterr().err


@pytest.mark.parametrize("text", [ABSENT, "A" * 40])
def test_a_base_that_no_layer_has_is_a_finding(built: TinyWorld, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert scan(built.layout(REPAIR).folder, "--base-commit", text) == 8
    output = capsys.readouterr()
    assert f"base commits: {text.lower()}" in output.out
    assert "or scan with the base commits" in output.err


def test_another_folder_is_no_layout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scan(tmp_path) == 3
    assert "not an OCI image layout" in capsys.readouterr().err


@pytest.mark.parametrize("count", [0, 2])
def test_a_layout_that_is_not_of_one_image_is_refused(
    built: TinyWorld, count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index = json.loads((built.layout(REPAIR).folder / "index.json").read_bytes())
    index["manifests"] *= count
    (tmp_path / "index.json").write_text(json.dumps(index))
    assert scan(tmp_path) == 3
    assert f"{count} manifests; a scan is of one image" in capsys.readouterr().err
