"""Build, over simulators: the unchanged is left alone, the damaged or foreign made anew, what fails stays unbuilt."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline.errors import ConfigError, ServiceError, StageError, VerificationError
from pipeline.layout import Layout
from pipeline.model.digest import digest_of, hex_of
from pipeline.model.reference import load_reference
from pipeline.stages.records import RECORD_NAME, load_built, load_checks
from tests.fakes.release import FIXTURE, REPAIR, WORKFLOW, KilledError, TinyWorld, copy_world, edit_yaml, snapshot


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> TinyWorld:
    made = TinyWorld(tmp_path_factory.mktemp("built") / "release")
    made.build()
    return made


@pytest.fixture
def built(template: TinyWorld, tmp_path: Path) -> TinyWorld:
    return copy_world(template, tmp_path / "release")


def made(world: TinyWorld) -> dict[str, bool]:
    return {outcome.record.image: outcome.made for outcome in world.build()}


def digests(world: TinyWorld) -> dict[str, str]:
    return {image: load_built(world.paths, image)[0].manifest_digest for image in (REPAIR, WORKFLOW)}


def has_record(world: TinyWorld, image: str) -> bool:
    return (world.paths.built(image) / RECORD_NAME).exists()


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_a_build_leaves_a_layout_and_every_document(built: TinyWorld) -> None:
    record, layout = load_built(built.paths, REPAIR)
    assert [(layer.name, layer.origin) for layer in record.layers] == [
        ("debian", "base"),
        ("packages", "base"),
        ("repository", "rewritten"),
        ("runtime", "added"),
        ("server", "added"),
        ("task", "added"),
    ]
    assert [entry.digest for entry in layout.load_index().manifests] == [record.manifest_digest]
    assert {output.path for output in record.outputs} == {
        "checks.json",
        "policies.json",
        "provenance.json",
        "sbom.cdx.json",
        "scan.json",
        "strip.json",
        *(f"statements/{kind}.json" for kind in ("signature", "provenance", "sbom", "scan", "checks")),
    }
    strip = json.loads((built.paths.built(REPAIR) / "strip.json").read_bytes())
    assert strip["leaks"]["reachable future"] > 0, "the task image had a future to strip"
    assert json.loads((built.paths.built(REPAIR) / "scan.json").read_bytes())["leaks"] == []
    assert len(load_checks(built.paths, record).results) == 3


def test_the_derived_image_shares_every_layer_of_its_base(built: TinyWorld) -> None:
    base, derived = (load_built(built.paths, image)[0] for image in (REPAIR, WORKFLOW))
    assert [layer.digest for layer in derived.layers[:-1]] == [layer.digest for layer in base.layers]
    assert derived.added_bytes == derived.layers[-1].size
    assert load_reference(derived.base, "record", pinned=True).digest == base.manifest_digest


def test_unchanged_inputs_do_nothing(built: TinyWorld) -> None:
    before = snapshot(built.root)
    assert made(built) == {REPAIR: False, WORKFLOW: False}
    assert snapshot(built.root) == before
    assert (built.sources.made, built.examiner.examined, built.registry.operations) == (0, [], [])


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("images/repair/server/parts/shell.py", {REPAIR: True, WORKFLOW: True}),
        ("images/repair/fixtures/reference.patch", {REPAIR: True, WORKFLOW: True}),
        ("images/workflow/workflow/__main__.py", {REPAIR: False, WORKFLOW: True}),
    ],
)
def test_a_changed_file_builds_what_is_made_from_it(built: TinyWorld, path: str, expected: dict[str, bool]) -> None:
    file = built.root / path
    file.write_text(file.read_text().replace("print('cases')", "print('more')").replace("True", "False") + "\n")
    before = digests(built)
    assert made(built) == expected
    after = digests(built)
    goes_in = "fixtures" not in path
    assert {image: before[image] != after[image] for image in before} == {i: m and goes_in for i, m in expected.items()}
    assert made(built) == {REPAIR: False, WORKFLOW: False}


def test_a_changed_record_is_refused_until_the_task_says_so(built: TinyWorld) -> None:
    task = built.root / "images/repair/tasks/lookup"
    record = (task / "record.json").read_bytes() + b"\n"
    (task / "record.json").write_bytes(record)
    with pytest.raises(ConfigError, match=r"record\.json is"):
        built.build()
    edit_yaml(task / "task.yaml", lambda document: document.update(record_sha256=hex_of(digest_of(record))))
    assert made(built) == {REPAIR: True, WORKFLOW: True}


def change_a_policy(world: TinyWorld) -> None:
    edit_yaml(world.root / "policies" / "size-budget.yaml", lambda policy: policy["parameters"].update(layers_max=127))


def change_the_code(world: TinyWorld) -> None:
    (world.root / "pipeline" / "stands_for_the_code.py").write_text("VERSION = 2\n")


def change_the_revision(world: TinyWorld) -> None:
    world.revision = "d" * 40


@pytest.mark.parametrize("change", [change_a_policy, change_the_code, change_the_revision])
def test_another_policy_pipeline_or_revision_builds_again(
    built: TinyWorld, change: Callable[[TinyWorld], None]
) -> None:
    change(built)
    assert made(built) == {REPAIR: True, WORKFLOW: True}
    assert made(built) == {REPAIR: False, WORKFLOW: False}


def test_another_base_digest_builds_the_derived_image_again(built: TinyWorld) -> None:
    (built.root / "images/repair/server/__main__.py").write_text("print('another server')\n")
    assert made(built) == {REPAIR: True, WORKFLOW: True}


def spoil_record(folder: Path) -> None:
    (folder / RECORD_NAME).write_bytes((folder / RECORD_NAME).read_bytes()[:-20])


def spoil_output(folder: Path) -> None:
    damage(folder / "checks.json")


def drop_output(folder: Path) -> None:
    (folder / "sbom.cdx.json").unlink()


def spoil_layer(folder: Path) -> None:
    damage(max((folder / "layout/blobs/sha256").iterdir(), key=lambda path: path.stat().st_size))


def drop_manifest(folder: Path) -> None:
    digest = json.loads((folder / "layout/index.json").read_bytes())["manifests"][0]["digest"]
    (folder / "layout/blobs/sha256" / hex_of(digest)).unlink()


def claim(**changes: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        record = json.loads((folder / RECORD_NAME).read_bytes())
        (folder / RECORD_NAME).write_text(json.dumps({**record, **changes}))

    change.__name__ = f"claim_{'_'.join(changes)}"
    return change


FOREIGN = [claim(release="2026-10-13"), claim(target="ghcr"), claim(image="another")]


@pytest.mark.parametrize("spoil", [spoil_record, spoil_output, drop_output, spoil_layer, drop_manifest, *FOREIGN])
def test_what_is_damaged_or_foreign_is_built_again(built: TinyWorld, spoil: Callable[[Path], None]) -> None:
    before = digests(built)
    spoil(built.paths.built(WORKFLOW))
    assert made(built) == {REPAIR: False, WORKFLOW: True}
    assert digests(built) == before


@pytest.mark.parametrize("spoil", FOREIGN)
def test_a_foreign_record_is_refused_by_the_next_stage(built: TinyWorld, spoil: Callable[[Path], None]) -> None:
    spoil(built.paths.built(REPAIR))
    with pytest.raises(StageError, match=r"a record of another (release|target|image)"):
        built.publish()
    assert not [operation for operation, _ in built.registry.operations if operation.startswith("push")]


def test_the_next_stage_refuses_what_was_never_built(tmp_path: Path) -> None:
    with pytest.raises(StageError, match="no record of build") as caught:
        TinyWorld(tmp_path / "release").publish()
    assert "nox -s build" in caught.value.remedy


@pytest.mark.parametrize("outcome", ["fail", "error"])
def test_a_check_that_fails_or_cannot_run_leaves_no_record(built: TinyWorld, outcome: str) -> None:
    change_the_code(built)
    built.examiner.outcomes["reset"] = outcome  # type: ignore[assignment]
    with pytest.raises(VerificationError, match=f"reset: {outcome}: reset works") as caught:
        built.build()
    assert (caught.value.exit_code, has_record(built, REPAIR)) == (8, False)
    assert REPAIR in caught.value.what
    report = json.loads((built.paths.built(REPAIR) / "checks.json").read_bytes())
    assert {each["id"]: each["outcome"] for each in report["results"]}["reset"] == outcome
    with pytest.raises(StageError, match="no record of build"):
        built.publish()
    built.examiner.outcomes.clear()
    assert made(built) == {REPAIR: True, WORKFLOW: True}


def test_no_check_at_all_is_not_green(built: TinyWorld) -> None:
    change_the_code(built)
    built.examiner.checks = ()
    with pytest.raises(VerificationError, match="no check ran"):
        built.build()
    assert not has_record(built, REPAIR)


def test_a_rejecting_policy_leaves_no_record_and_is_named(built: TinyWorld) -> None:
    edit_yaml(built.root / "policies" / "size-budget.yaml", lambda policy: policy["parameters"].update(layers_max=4))
    with pytest.raises(VerificationError, match="size-budget: fail: 6 layers"):
        built.build()
    assert not has_record(built, REPAIR)


def test_a_schema_that_consumers_were_not_given_is_refused(built: TinyWorld) -> None:
    change_the_code(built)
    built.examiner.schema = {**built.examiner.schema, "action": {}}
    with pytest.raises(VerificationError, match="schemas-equal: fail"):
        built.build()


def test_a_fixture_that_a_file_set_takes_along_is_refused(built: TinyWorld) -> None:
    (built.root / "images/repair/server/notes.txt").write_bytes(FIXTURE)
    with pytest.raises(VerificationError, match="no-fixtures: fail"):
        built.build()
    assert not has_record(built, REPAIR)


def test_a_rebuilt_repository_with_another_base_commit_is_refused(built: TinyWorld) -> None:
    change_the_code(built)
    built.sources.base_commit = "e" * 40
    with pytest.raises(ConfigError, match="base commit is eeee") as caught:
        built.build()
    assert "task.yaml: base_commit" in caught.value.where
    assert not [operation for operation, _ in built.registry.operations if operation.startswith("push")]


def test_a_link_in_a_definition_is_refused(built: TinyWorld) -> None:
    (built.root / "images/repair/server/passwd").symlink_to("/etc/passwd")
    with pytest.raises(ConfigError, match="only plain files") as caught:
        built.build()
    assert caught.value.where.endswith("server/passwd")


@pytest.mark.parametrize("step", ["scan", "check"])
def test_killed_in_the_middle_leaves_no_record_and_a_rerun_recovers(built: TinyWorld, step: str) -> None:
    before = digests(built)
    change_the_revision(built)
    expected = copy_world(built, built.root.with_name("other"))
    expected.revision = built.revision

    def kill(reached: str) -> None:
        if reached == step:
            raise KilledError

    built.examiner.before = kill
    with pytest.raises(KilledError):
        built.build()
    assert not has_record(built, REPAIR)
    assert built.engine.images == {}  # type: ignore[attr-defined]
    built.examiner.before = lambda reached: None
    assert made(built) == {REPAIR: True, WORKFLOW: True}
    expected.build()
    assert digests(built) == digests(expected) != before


def test_an_engine_that_dies_in_the_middle_is_a_service_error_and_a_rerun_recovers(built: TinyWorld) -> None:
    change_the_code(built)
    built.examiner.before = lambda step: built.engine.dies() if step == "check" else None
    with pytest.raises(ServiceError, match="does not answer") as caught:
        built.build()
    assert (caught.value.exit_code, has_record(built, REPAIR)) == (5, False)
    assert caught.value.remedy
    assert made(built.restart()) == {REPAIR: True, WORKFLOW: True}


@pytest.fixture
def other_circumstances(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    mask = os.umask(0o077)
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    monkeypatch.setenv("LANG", "C")
    monkeypatch.setenv("LC_ALL", "tr_TR.UTF-8")
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.chdir(tmp_path)
    time.tzset()
    yield
    os.umask(mask)
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("other_circumstances")
def test_same_inputs_give_the_same_bytes_elsewhere(template: TinyWorld, tmp_path: Path) -> None:
    elsewhere = TinyWorld(tmp_path / "a folder with spaces" / "release")
    for number, path in enumerate(sorted((elsewhere.root / "images").rglob("*.py"))):
        path.chmod(0o600 if number % 2 else 0o777)
        os.utime(path, (number, number))
    shutil.rmtree(elsewhere.paths.state, ignore_errors=True)
    assert made(elsewhere) == {REPAIR: True, WORKFLOW: True}
    assert digests(elsewhere) == digests(template)
    for image in (REPAIR, WORKFLOW):
        assert snapshot(elsewhere.paths.built(image)) == snapshot(template.paths.built(image))


def test_a_pinned_image_is_taken_over_as_it_is(template: TinyWorld, tmp_path: Path) -> None:
    record, layout = load_built(template.paths, REPAIR)
    pinned = TinyWorld(tmp_path / "release")
    repository = "somebody/images"
    edit_yaml(
        pinned.release_path,
        lambda release: release["targets"]["remote"].update(
            pinned={REPAIR: f"registry.test/{repository}@{record.manifest_digest}"}
        ),
    )
    pinned = TinyWorld(pinned.root, "remote")
    serve(pinned, repository, layout, record.manifest_digest)
    pinned.build()
    taken, taken_layout = load_built(pinned.paths, REPAIR)
    assert taken.pinned
    assert taken.added_bytes == 0
    assert taken.manifest_digest == record.manifest_digest
    with taken_layout.open(taken.manifest_digest) as blob:
        assert digest_of(blob.read()) == record.manifest_digest
    assert pinned.sources.made == 0
    derived, _ = load_built(pinned.paths, WORKFLOW)
    assert load_reference(derived.base, "record", pinned=True).digest == record.manifest_digest
    assert not [operation for operation, _ in pinned.registry.operations if operation.startswith("push")]


def serve(world: TinyWorld, repository: str, layout: Layout, digest: str) -> None:
    manifest = layout.load_manifest(layout.load_index().manifests[0])
    assert manifest.digest == digest
    held = world.registry.content.repository(repository)
    for blob in (manifest.view.config, *manifest.view.layers):
        held.blobs[blob.digest] = layout.path(blob.digest).read_bytes()
    held.put(digest, manifest)
