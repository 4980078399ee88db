"""Evidence that is forged whole, derived files and index included, is not what was signed before publication."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import VerificationError
from pipeline.model.digest import digest_of
from pipeline.model.record import canonical_json
from pipeline.report.evidence import INDEX, derive_files, make_index
from pipeline.stages.review import load_evidence
from tests.fakes.release import REPAIR, TinyWorld, snapshot

CHECKS, SCAN = f"images/{REPAIR}/checks-after.json", f"images/{REPAIR}/scan.json"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> TinyWorld:
    made = TinyWorld(tmp_path_factory.mktemp("verified") / "release")
    made.build()
    made.publish()
    assert made.verify().passed
    return made


@pytest.fixture
def folder(world: TinyWorld, tmp_path: Path) -> Path:
    return Path(shutil.copytree(world.paths.evidence, tmp_path / "evidence"))


def forge(world: TinyWorld, folder: Path, name: str, change: Callable[[Any], object]) -> None:
    """Change a primary file, then write everything anew that follows from it: only what is signed stays."""
    document = json.loads((folder / name).read_bytes())
    change(document)
    (folder / name).write_bytes(canonical_json(document))
    index = json.loads((folder / INDEX).read_bytes())
    listed = {path: data for path, data in snapshot(folder).items() if path != INDEX}
    index["files"] = [{"path": path, "digest": digest_of(data), "size": len(data)} for path, data in listed.items()]
    index["files"].sort(key=lambda entry: entry["path"])
    (folder / INDEX).write_bytes(canonical_json(index))
    facts = load_evidence(folder, None, world.make_verifier, world.reporter).facts
    files = {**listed, **derive_files(facts)}
    for path, data in files.items():
        (folder / path).write_bytes(data)
    (folder / INDEX).write_bytes(make_index(facts, files))


def edit_an_observation(report: Any) -> None:
    report["results"][0].update(expected="anything", observed="anything")


def edit_a_statement(report: Any) -> None:
    report["results"][-1]["statement"] = "the moon is made of cheese"


def count_more(scan: Any) -> None:
    scan["layers"][0]["entries"] += 1


def leave_a_layer_out(scan: Any) -> None:
    scan["layers"].pop()


def count_a_layer_twice(scan: Any) -> None:
    scan["layers"].append(scan["layers"][0])


FORGERIES = [
    (CHECKS, edit_an_observation),
    (CHECKS, edit_a_statement),
    (SCAN, count_more),
    (SCAN, leave_a_layer_out),
    (SCAN, count_a_layer_twice),
]


@pytest.mark.parametrize(("name", "change"), FORGERIES, ids=[change.__name__ for _, change in FORGERIES])
def test_what_was_forged_whole_does_not_pass(
    world: TinyWorld, folder: Path, name: str, change: Callable[[Any], object]
) -> None:
    forge(world, folder, name, change)
    with pytest.raises(VerificationError, match="does not pass"):
        world.review(folder)
    assert "1 difference between" in (folder / "report.md").read_text()


def test_the_same_steps_without_a_change_pass(world: TinyWorld, folder: Path) -> None:
    forge(world, folder, SCAN, lambda scan: None)
    assert world.review(folder).facts.passed
