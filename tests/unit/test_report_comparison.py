"""The release before: found, verified, kept in previous.json, shown, and checked again by a review of one folder."""

from __future__ import annotations

import shutil
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.errors import IntegrityError
from pipeline.model.digest import digest_of
from pipeline.model.evidence import EvidenceFile, EvidenceIndex, PreviousRelease
from pipeline.paths import Paths
from pipeline.report.evidence import INDEX, derive_files, make_index
from pipeline.report.facts import ReleaseFacts
from pipeline.stages.comparison import compare_folders, find_previous, load_previous, load_release
from pipeline.stages.evidence import write_evidence
from pipeline.stages.verify import VerifyPorts, verify
from pipeline.verbs_report import diff
from pipeline.world import World, load_settings
from tests.fakes.release import REPAIR, TinyWorld, edit_yaml

EARLIER, OLDER, LATER = "2026-09-28", "2026-09-01", "2026-10-12"


class DatedWorld(TinyWorld):
    """A tiny release of any date, in one folder with the others."""

    date = LATER

    @property
    def paths(self) -> Paths:
        return Paths(self.root, self.date, self.target)

    def verify(self) -> ReleaseFacts:
        """The stage, and what it writes when it knows the release before."""
        self.examiner.plan, self.examiner.engine = self.plan, self.engine
        ports = VerifyPorts(self.registry.anonymous, self.engine, self.verifier, self.examiner, self.reporter)
        previous = load_previous(self.paths, self.make_verifier, self.reporter)
        seen = verify(self.plan, self.paths, ports, {})
        return write_evidence(self.plan, self.paths, seen, self.sigstore.name.encode(), previous)

    def release_on(self, date: str) -> ReleaseFacts:
        """Build, publish and verify on a date."""
        self.date = date
        edit_yaml(self.release_path, lambda document: document.update(release=date))
        self.build()
        self.publish()
        return self.verify()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> DatedWorld:
    made = DatedWorld(tmp_path_factory.mktemp("compared") / "release")
    made.release_on(EARLIER)
    server = made.root / "images" / "repair" / "server" / "__main__.py"
    server.write_text("print('another server')\n")
    made.release_on(LATER)
    return made


@pytest.fixture
def world(template: DatedWorld, tmp_path: Path) -> DatedWorld:
    """The same, to be changed."""
    shutil.copytree(template.root / "evidence", tmp_path / "evidence")
    copied = DatedWorld(tmp_path)
    edit_yaml(copied.release_path, lambda document: document.update(release=LATER))
    return copied


def previous_of(world: DatedWorld) -> PreviousRelease | None:
    return load_previous(world.paths, world.make_verifier, world.reporter)


def write_again(world: DatedWorld, previous: PreviousRelease) -> None:
    """The later release's evidence with another previous.json, its index in order."""
    facts = load_release(world.paths.evidence, world.make_verifier, world.reporter)
    folder = world.paths.evidence
    index = EvidenceIndex.load((folder / INDEX).read_bytes(), INDEX)
    files = {file.path: (folder / file.path).read_bytes() for file in index.files}
    files["previous.json"] = previous.to_bytes()
    facts = replace(facts, previous=previous)
    files |= derive_files(facts)
    files[INDEX] = make_index(facts, files)
    for path, data in files.items():
        (folder / path).write_bytes(data)


def test_the_first_release_has_no_other_to_compare_with(world: DatedWorld) -> None:
    world.date = EARLIER
    assert find_previous(world.paths) is None
    assert previous_of(world) is None
    assert not (world.paths.evidence / "previous.json").exists()
    assert "no earlier release" in (world.paths.evidence / "report.html").read_text()
    world.review(world.paths.evidence)


def test_the_newest_earlier_release_on_the_same_target_is_found(world: DatedWorld) -> None:
    evidence = world.root / "evidence"
    for other in (f"{OLDER}/local", "2026-10-01/remote", "2026-10-20/local", "notes/local"):
        shutil.copytree(evidence / EARLIER / "local", evidence / other)
    (evidence / "2026-10-05" / "local").mkdir(parents=True)  # begun, never written
    assert find_previous(world.paths) == evidence / EARLIER / "local"


def test_the_previous_release_is_named_by_the_digest_of_its_index(world: DatedWorld) -> None:
    found = previous_of(world)
    assert found is not None
    assert found.snapshot.release == EARLIER
    assert found.index == digest_of((world.root / "evidence" / EARLIER / "local" / INDEX).read_bytes())


def test_evidence_in_another_releases_folder_is_refused(world: DatedWorld) -> None:
    evidence = world.root / "evidence"
    shutil.copytree(evidence / EARLIER / "local", evidence / "2026-10-01" / "local")
    with pytest.raises(IntegrityError, match=f"the evidence of {EARLIER} on local lies in another"):
        previous_of(world)


def test_a_damaged_earlier_release_is_named(world: DatedWorld) -> None:
    path = world.root / "evidence" / EARLIER / "local" / "images" / REPAIR / "scan.json"
    path.write_bytes(path.read_bytes().replace(b"0", b"1", 1))
    with pytest.raises(IntegrityError) as caught:
        previous_of(world)
    assert caught.value.where == f"images/{REPAIR}/scan.json"


def test_an_earlier_release_signed_by_nobody_is_refused(world: DatedWorld) -> None:
    folder = world.root / "evidence" / EARLIER / "local"
    _replace(folder, f"images/{REPAIR}/attestations/sbom.sigstore.json", b"{}")
    with pytest.raises(IntegrityError, match="the bundle does not verify"):
        previous_of(world)


def test_what_changed_is_on_both_reports_and_a_review_of_the_folder_alone_repeats_it(
    world: DatedWorld, tmp_path: Path
) -> None:
    folder = world.paths.evidence
    assert (folder / "previous.json").is_file()
    assert f"From release {EARLIER} on local to {LATER} on local." in (folder / "report.md").read_text()
    assert "images: 2 changed" in (folder / "report.html").read_text()
    world.review(folder)
    alone = tmp_path / "elsewhere" / "a" / "b"
    shutil.copytree(folder, alone)
    world.review(alone)


def test_a_review_names_a_comparison_with_another_release_than_the_one_beside(
    world: DatedWorld,
) -> None:
    honest = previous_of(world)
    assert honest is not None
    write_again(world, honest.model_copy(update={"index": digest_of(b"another")}))
    with pytest.raises(IntegrityError, match=f"the evidence of {EARLIER} is not the one") as caught:
        world.review()
    assert caught.value.where == "previous.json"


@pytest.mark.parametrize("change", [{"release": LATER}, {"release": "2027-01-01"}, {"target": "remote"}])
def test_a_review_refuses_a_previous_release_that_is_none(world: DatedWorld, change: dict[str, str]) -> None:
    honest = previous_of(world)
    assert honest is not None
    snapshot = honest.snapshot.model_copy(update=change)
    write_again(world, honest.model_copy(update={"snapshot": snapshot}))
    with pytest.raises(IntegrityError, match="not an earlier release on the same target"):
        world.review()


def test_a_changed_page_fails_the_review(world: DatedWorld) -> None:
    _replace(world.paths.evidence, "report.html", b"<!doctype html><p>passes")
    with pytest.raises(IntegrityError, match="does not follow from the others") as caught:
        world.review()
    assert caught.value.where == "report.html"


def test_folders_are_compared_either_way_round(world: DatedWorld) -> None:
    old, new = (world.root / "evidence" / date / "local" for date in (EARLIER, LATER))
    there = compare_folders(old, new, world.make_verifier, world.reporter)
    back = compare_folders(new, old, world.make_verifier, world.reporter)
    assert [change.kind for change in there.layers] != []
    assert {(change.kind, change.what) for change in back.layers} == {
        ({"added": "removed", "removed": "added"}[change.kind], change.what) for change in there.layers
    }
    assert there.signing == there.policies == ()


def test_the_verb_prints_the_list(
    world: DatedWorld, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(World, "make_reviewer", world.make_verifier)
    old, new = (world.root / "evidence" / date / "local" for date in (EARLIER, LATER))
    diff(Namespace(old=old, new=new, release=world.release_path, target=None), load_settings({}))
    said = capsys.readouterr().out
    assert f"from {EARLIER} on local to {LATER} on local\n" in said
    assert "policies: no difference" in said


def _replace(folder: Path, path: str, data: bytes) -> None:
    """Change a file and the index with it, as a forger would."""
    (folder / path).write_bytes(data)
    index = EvidenceIndex.load((folder / INDEX).read_bytes(), INDEX)
    forged = EvidenceFile(path=path, digest=digest_of(data), size=len(data))
    files = tuple(forged if file.path == path else file for file in index.files)
    (folder / INDEX).write_bytes(index.model_copy(update={"files": files}).to_bytes())
