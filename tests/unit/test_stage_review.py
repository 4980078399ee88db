"""Review, offline: one changed byte anywhere fails and names the file; so does a file too many, too few, or a link."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import HostileInputError, IntegrityError, PipelineError, StageError, VerificationError
from pipeline.files import write_atomic
from pipeline.model.attestation import PREDICATE_TYPES
from pipeline.model.digest import digest_of
from pipeline.model.record import canonical_json
from pipeline.report.evidence import INDEX
from tests.fakes.release import REPAIR, WORKFLOW, TinyWorld, edit_yaml
from tests.fakes.release import snapshot as files_of


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


def list_again(folder: Path) -> None:
    """What a forger does who understands the index: list every file as it is now."""
    index = json.loads((folder / INDEX).read_bytes())
    files = {name: data for name, data in files_of(folder).items() if name != INDEX}
    index["files"] = [
        {"path": name, "digest": digest_of(data), "size": len(data)} for name, data in sorted(files.items())
    ]
    write_atomic(folder / INDEX, canonical_json(index))


def edit_json(path: Path, change: Callable[[Any], object]) -> None:
    document = json.loads(path.read_bytes())
    change(document)
    write_atomic(path, canonical_json(document))


def test_whole_evidence_holds(world: TinyWorld, folder: Path) -> None:
    found = world.review(folder)
    assert found.facts.passed
    assert found.bundles == 2 * len(PREDICATE_TYPES) + 1
    assert found.files == len(files_of(folder)) - 1
    assert found.facts.inputs.release == "2026-10-12"


def test_a_review_reads_and_writes_nothing_else(world: TinyWorld, folder: Path) -> None:
    before, operations = files_of(folder.parent), len(world.registry.operations)
    world.review(folder)
    assert files_of(folder.parent) == before
    assert len(world.registry.operations) == operations


def test_a_flipped_bit_in_any_file_is_named(world: TinyWorld, folder: Path) -> None:
    names = sorted(files_of(folder))
    assert len(names) > 30
    for name in names:
        whole = (folder / name).read_bytes()
        for offset in {0, len(whole) // 3, len(whole) // 2, len(whole) - 1}:
            changed = bytearray(whole)
            changed[offset] ^= 1
            (folder / name).write_bytes(changed)
            with pytest.raises(PipelineError) as caught:
                world.review(folder)
            assert caught.value.exit_code in (3, 7), f"{name} at {offset}: {caught.value}"
            if name != INDEX:
                assert name in caught.value.where, f"{name} at {offset}: {caught.value}"
        (folder / name).write_bytes(whole)
    assert world.review(folder).facts.passed


def test_every_bit_of_the_index_counts(world: TinyWorld, folder: Path) -> None:
    whole = (folder / INDEX).read_bytes()
    for offset in range(0, len(whole), 23):
        changed = bytearray(whole)
        changed[offset] ^= 4
        (folder / INDEX).write_bytes(changed)
        with pytest.raises(PipelineError) as caught:
            world.review(folder)
        # a flipped bit in the path, size or digest of a file makes that file the one that does not hold
        assert caught.value.where, f"offset {offset}"


@pytest.mark.parametrize("end", ["", "\n", " "])
def test_bytes_after_or_cut_from_the_index_count(world: TinyWorld, folder: Path, end: str) -> None:
    whole = (folder / INDEX).read_bytes()
    (folder / INDEX).write_bytes(whole + end.encode() if end else whole[:-1])
    with pytest.raises(PipelineError) as caught:
        world.review(folder)
    assert INDEX in caught.value.where


@pytest.mark.parametrize("name", ["notes.txt", "images/lookup/more.json", ".hidden", "images/other/manifest.json"])
def test_a_file_too_many_is_named(world: TinyWorld, folder: Path, name: str) -> None:
    write_atomic(folder / name, b"{}")
    with pytest.raises(IntegrityError, match="does not name this file") as caught:
        world.review(folder)
    assert caught.value.where == name


def test_a_file_too_few_is_named(world: TinyWorld, folder: Path) -> None:
    for name in sorted(files_of(folder)):
        if name == INDEX:
            continue
        kept = (folder / name).read_bytes()
        (folder / name).unlink()
        with pytest.raises(IntegrityError, match="missing") as caught:
            world.review(folder)
        assert caught.value.where == name
        write_atomic(folder / name, kept)


def test_without_an_index_it_is_no_evidence(world: TinyWorld, folder: Path) -> None:
    (folder / INDEX).unlink()
    with pytest.raises(StageError, match="not an evidence folder"):
        world.review(folder)


def link_a_file(folder: Path) -> str:
    (folder / "report.md").rename(folder.parent / "report.md")
    (folder / "report.md").symlink_to(folder.parent / "report.md")
    return "report.md"


def link_a_folder(folder: Path) -> str:
    (folder / "images" / REPAIR).rename(folder.parent / REPAIR)
    (folder / "images" / REPAIR).symlink_to(folder.parent / REPAIR)
    return f"images/{REPAIR}"


def make_a_fifo(folder: Path) -> str:
    (folder / "report.md").unlink()
    os.mkfifo(folder / "report.md")
    return "report.md"


def link_the_index(folder: Path) -> str:
    (folder / INDEX).rename(folder.parent / INDEX)
    (folder / INDEX).symlink_to(folder.parent / INDEX)
    return INDEX


@pytest.mark.parametrize("plant", [link_a_file, link_a_folder, make_a_fifo, link_the_index])
def test_a_link_or_a_special_file_is_refused(world: TinyWorld, folder: Path, plant: Callable[[Path], str]) -> None:
    name = plant(folder)
    with pytest.raises(IntegrityError) as caught:
        world.review(folder)
    assert name in caught.value.where


def forge_checks(folder: Path) -> str:
    edit_json(folder / f"images/{REPAIR}/checks-after.json", lambda report: report["results"].pop())
    return f"images/{REPAIR}/agreement.json"


def forge_the_verdict(folder: Path) -> str:
    edit_json(folder / INDEX, lambda index: index.update(verdict="failed"))
    return INDEX


def forge_a_report(folder: Path) -> str:
    report = folder / "report.md"
    report.write_bytes(report.read_bytes().replace(b"3 passed", b"9 passed"))
    return "report.md"


def forge_a_state(folder: Path) -> str:
    edit_json(folder / "state.json", lambda state: state["states"].update(training="done"))
    return "state.json"


def forge_the_pull(folder: Path) -> str:
    edit_json(folder / f"images/{REPAIR}/pull.json", lambda pull: pull["blobs"].pop())
    return f"images/{REPAIR}/pull.json"


def forge_a_config(folder: Path) -> str:
    edit_json(folder / f"images/{REPAIR}/config.json", lambda config: config["config"].update(User="nobody"))
    return f"images/{REPAIR}/config.json"


def swap_images(folder: Path) -> str:
    first, second = (folder / "images" / name for name in (REPAIR, WORKFLOW))
    first.rename(folder / "kept")
    second.rename(first)
    (folder / "kept").rename(second)
    return "release.sigstore.json"


def loosen_a_policy(folder: Path) -> str:
    edit_json(folder / "inputs.json", lambda inputs: inputs["policies"].pop())
    return "policies.json"


def drop_an_attestation(folder: Path) -> str:
    [path] = [path for path in folder.rglob("*summary*") if REPAIR in str(path)]
    path.unlink()
    return path.relative_to(folder).as_posix()


def bring_another_root(folder: Path) -> str:
    (folder / "trusted_root.json").write_bytes(b"another root")
    return "images/"


FORGERIES = [
    forge_checks,
    forge_a_report,
    forge_a_state,
    forge_the_pull,
    forge_a_config,
    swap_images,
    loosen_a_policy,
    drop_an_attestation,
    bring_another_root,
]


@pytest.mark.parametrize("forge", FORGERIES)
def test_a_forgery_that_lists_itself_in_the_index_is_named(
    world: TinyWorld, folder: Path, forge: Callable[[Path], str]
) -> None:
    name = forge(folder)
    list_again(folder)
    with pytest.raises(IntegrityError) as caught:
        world.review(folder)
    assert name in caught.value.where


def test_a_forged_verdict_is_refused(world: TinyWorld, folder: Path) -> None:
    forge_the_verdict(folder)
    with pytest.raises(IntegrityError, match="the index does not follow") as caught:
        world.review(folder)
    assert caught.value.where == INDEX


def test_an_index_that_leads_out_of_the_folder_is_refused(world: TinyWorld, folder: Path) -> None:
    (folder.parent / "outside.json").write_bytes(b"{}")
    entry = {"path": "../outside.json", "digest": digest_of(b"{}"), "size": 2}
    edit_json(folder / INDEX, lambda index: index["files"].append(entry))
    with pytest.raises(IntegrityError):
        world.review(folder)


def test_evidence_of_another_target_cannot_be_presented_as_this_one(world: TinyWorld, folder: Path) -> None:
    edit_json(folder / "inputs.json", lambda inputs: inputs.update(target_name="remote"))
    edit_json(folder / INDEX, lambda index: index.update(target="remote"))
    list_again(folder)
    with pytest.raises(IntegrityError, match=r"the target.s kind is embedded, and release\.yaml says remote") as caught:
        world.review(folder)
    assert caught.value.where == "inputs.json"


def test_an_identity_that_this_repository_does_not_expect_is_refused(world: TinyWorld, folder: Path) -> None:
    edit_json(folder / "inputs.json", lambda inputs: inputs["target"]["identity"].update(subject="https://evil.test/x"))
    list_again(folder)
    with pytest.raises(IntegrityError, match="the target's identity"):
        world.review(folder)


def test_a_target_that_this_repository_does_not_have_is_refused(world: TinyWorld, folder: Path) -> None:
    edit_json(folder / "inputs.json", lambda inputs: inputs.update(target_name="elsewhere"))
    list_again(folder)
    with pytest.raises(IntegrityError, match="no target 'elsewhere'"):
        world.review(folder)


def test_a_file_of_a_size_without_end_is_refused(world: TinyWorld, folder: Path) -> None:
    with (folder / "report.md").open("r+b") as file:
        file.truncate(300 << 20)
    with pytest.raises(HostileInputError, match="larger than the limit"):
        world.review(folder)


def test_intact_evidence_of_a_release_that_fails_does_not_pass(tmp_path: Path) -> None:
    failing = TinyWorld(tmp_path / "release")
    failing.build()
    failing.publish()
    edit_yaml(failing.root / "policies/size-budget.yaml", lambda policy: policy["parameters"].update(layers_max=6))
    failing.verify()
    with pytest.raises(VerificationError, match="the evidence is intact, and the release does not pass") as caught:
        failing.review()
    assert caught.value.where.endswith("report.md")
