"""The signed manifest of a whole release: published once, found without our disk, and exactly what was pulled."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.adapters.keyless.bundle import load_outline
from pipeline.derive.release_manifest import (
    ARTIFACT_TYPE,
    Released,
    load_artifact,
    make_artifact,
    make_release_manifest,
    make_release_statement,
    release_reference,
)
from pipeline.derive.statements import load_joint_statement, load_statement
from pipeline.errors import AbsentError, ConfigError, HostileInputError, IntegrityError
from pipeline.files import write_atomic
from pipeline.model.attestation import MAX_SUBJECTS, PREDICATE_TYPES, RELEASE_MANIFEST, Step
from pipeline.model.digest import digest_of
from pipeline.model.evidence import RELEASE_BUNDLE
from pipeline.model.oci import OCI_EMPTY, OCI_MANIFEST, Manifest
from pipeline.model.record import canonical_json
from pipeline.model.reference import load_reference
from pipeline.report.evidence import INDEX
from tests.fakes.registry_content import Repository, make_image
from tests.fakes.release import DATE, REPAIR, WORKFLOW, KilledError, TinyWorld, copy_world, edit_yaml
from tests.fakes.release import snapshot as files_of
from tests.fakes.signing import FakeSigner, FakeSigstore

TAGGED = load_reference("registry.test/releases/one:2026-10-12", "test")
SIGNED_AT = "2026-10-12T08:00:00Z"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> TinyWorld:
    made = TinyWorld(tmp_path_factory.mktemp("published") / "release")
    made.build()
    made.publish()
    return made


@pytest.fixture
def published(template: TinyWorld, tmp_path: Path) -> TinyWorld:
    return copy_world(template, tmp_path / "release")


def repository(world: TinyWorld, name: str = "release") -> Repository:
    return world.registry.content.repository(f"releases/{name}")


def bundle_of(world: TinyWorld) -> bytes:
    held = repository(world)
    return held.blobs[held.manifests[held.tags[DATE]].view.layers[0].digest]


def payload_of(world: TinyWorld) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(load_outline(bundle_of(world)).payload)
    return found


def put_bundle(world: TinyWorld, bundle: bytes) -> None:
    """What somebody does who may push to the registry."""
    held = repository(world)
    held.blobs[digest_of(bundle)] = bundle
    held.put(DATE, make_artifact(bundle, SIGNED_AT))


def resign(world: TinyWorld, change: Callable[[dict[str, Any]], object], signer: FakeSigner | None = None) -> None:
    document = payload_of(world)
    change(document)
    put_bundle(world, (signer or FakeSigner(world.sigstore)).sign(canonical_json(document)))


def test_it_names_every_image_and_every_bundle(published: TinyWorld) -> None:
    document = payload_of(published)
    assert document["predicateType"] == RELEASE_MANIFEST
    predicate = document["predicate"]
    assert (predicate["release"], predicate["target"]) == (DATE, "local")
    host = published.registry.host
    digests = [repository(published, image).tags[DATE] for image in (REPAIR, WORKFLOW)]
    names = [f"{host}/releases/{image}" for image in (REPAIR, WORKFLOW)]
    assert [(each["name"], f"sha256:{each['digest']['sha256']}") for each in document["subject"]] == [
        *zip(names, digests, strict=True)
    ]
    for image, described, subject in zip((REPAIR, WORKFLOW), predicate["images"], document["subject"], strict=True):
        assert (described["id"], described["tag"], described["repository"]) == (image, DATE, subject["name"])
        assert described["digest"] == subject["digest"]
        assert [each["name"] for each in described["attestations"]] == list(PREDICATE_TYPES)
        for each in described["attestations"]:
            assert f"sha256:{each['digest']['sha256']}" in repository(published, image).blobs


def test_it_is_an_artifact_that_standard_tools_fetch_as_a_file(published: TinyWorld) -> None:
    view = repository(published).manifests[repository(published).tags[DATE]].view
    assert (view.artifact_type, view.config.media_type, view.subject) == (ARTIFACT_TYPE, OCI_EMPTY, None)
    assert view.layers[0].annotations == {"org.opencontainers.image.title": RELEASE_BUNDLE}


def test_publishing_again_signs_and_sends_nothing(published: TinyWorld) -> None:
    first, log = dict(repository(published).manifests), len(published.sigstore.log)
    published.publish()
    assert (repository(published).manifests, len(published.sigstore.log)) == (first, log)


def test_on_another_disk_what_is_published_is_kept(published: TinyWorld) -> None:
    first, log = dict(repository(published).manifests), len(published.sigstore.log)
    shutil.rmtree(published.paths.state / "publish")
    published.publish()
    assert (repository(published).manifests, len(published.sigstore.log)) == (first, log)


@pytest.mark.parametrize("operation", ["push_blob", "push_manifest"])
def test_interrupted_it_is_signed_once(published: TinyWorld, operation: str) -> None:
    held = repository(published)
    for kept in (held.manifests, held.tags, held.blobs):
        kept.clear()
    shutil.rmtree(published.paths.published_release)
    log = len(published.sigstore.log)

    def die(reached: str, reference: object) -> None:
        if reached == operation and "releases/release" in str(reference):
            raise KilledError

    published.registry.faults.before = die
    for _ in range(3):
        with pytest.raises(KilledError):
            published.publish()
    assert held.tags == {}
    published.registry.faults.before = lambda reached, reference: None
    published.publish()
    assert len(published.sigstore.log) == log + 1
    assert list(held.tags) == [DATE]
    assert published.verify().passed


def test_a_tampered_journal_is_refused_by_name(published: TinyWorld) -> None:
    repository(published).tags.clear()
    [journalled] = (published.paths.published_release / "journal").iterdir()
    journalled.write_bytes(journalled.read_bytes().replace(b'"payload": "ey', b'"payload": "eX'))
    with pytest.raises(IntegrityError) as caught:
        published.publish()
    assert str(journalled) in caught.value.where
    assert "remove" in caught.value.remedy
    assert repository(published).tags == {}


def test_an_image_that_is_called_release_is_refused_before_anything_is_pushed(published: TinyWorld) -> None:
    def rename(document: dict[str, Any]) -> None:
        document["images"][1]["id"] = "release"

    edit_yaml(published.release_path, rename)
    published.registry.operations.clear()
    with pytest.raises(ConfigError, match="names the release manifest"):
        published.publish()
    assert published.registry.operations == []


def drop_an_image(document: dict[str, Any]) -> None:
    document["subject"].pop()
    document["predicate"]["images"].pop()


def add_an_image(document: dict[str, Any]) -> None:
    document["subject"].append({"name": "registry.test/other", "digest": {"sha256": "5" * 64}})


def swap_subjects(document: dict[str, Any]) -> None:
    document["subject"].reverse()


def name_another_digest(document: dict[str, Any]) -> None:
    document["subject"][0]["digest"]["sha256"] = "5" * 64


def name_another_bundle(document: dict[str, Any]) -> None:
    document["predicate"]["images"][0]["attestations"][0]["digest"]["sha256"] = "5" * 64


def omit_a_bundle(document: dict[str, Any]) -> None:
    document["predicate"]["images"][0]["attestations"].pop()


def name_another_date(document: dict[str, Any]) -> None:
    document["predicate"]["release"] = "2026-10-26"


def name_another_target(document: dict[str, Any]) -> None:
    document["predicate"]["target"] = "remote"


def name_another_tag(document: dict[str, Any]) -> None:
    document["predicate"]["images"][1]["tag"] = "2026-10-26"


def change_the_type(document: dict[str, Any]) -> None:
    document["predicateType"] = PREDICATE_TYPES["summary"]


CHANGES: list[tuple[Callable[[dict[str, Any]], None], str]] = [
    (drop_an_image, Step.SUBJECT),
    (add_an_image, Step.SUBJECT),
    (swap_subjects, Step.SUBJECT),
    (name_another_digest, Step.SUBJECT),
    (change_the_type, Step.PREDICATE),
    (name_another_bundle, ""),
    (omit_a_bundle, ""),
    (name_another_date, ""),
    (name_another_target, ""),
    (name_another_tag, ""),
]


@pytest.mark.parametrize(("change", "step"), CHANGES, ids=[change.__name__ for change, _ in CHANGES])
def test_a_manifest_that_says_something_else_is_refused_by_verify_and_publish(
    published: TinyWorld, change: Callable[[dict[str, Any]], None], step: str
) -> None:
    resign(published, change)
    for stage in (published.verify, published.publish):
        with pytest.raises(IntegrityError, match="the release manifest") as caught:
            stage()
        assert f"releases/release:{DATE}" in caught.value.where
        assert step in caught.value.where
    assert published.examiner.examined == [], "nothing of it was run"
    assert not published.paths.evidence.exists()


@pytest.mark.parametrize(
    ("signer", "step"),
    [
        (FakeSigner(FakeSigstore("another root")), Step.TIMESTAMP),
        (FakeSigner(FakeSigstore(), subject="https://local-sigstore.test/somebody"), Step.IDENTITY),
    ],
)
def test_a_manifest_that_somebody_else_signed_is_refused(published: TinyWorld, signer: FakeSigner, step: str) -> None:
    resign(published, lambda document: None, signer)
    with pytest.raises(IntegrityError, match="the release manifest does not verify") as caught:
        published.verify()
    assert step in caught.value.where


def test_without_a_manifest_a_release_is_not_whole(published: TinyWorld) -> None:
    repository(published).tags.clear()
    with pytest.raises(AbsentError) as caught:
        published.verify()
    assert "nox -s publish" in caught.value.remedy


def test_something_else_under_the_tag_is_refused_and_stays(published: TinyWorld) -> None:
    image = make_image()
    repository(published).put(DATE, image)
    for stage in (published.verify, published.publish):
        with pytest.raises(HostileInputError, match="not a release manifest: artifactType"):
            stage()
    assert repository(published).tags == {DATE: image.digest}


def test_evidence_has_the_bundle_and_both_reports_say_how_to_verify_it(published: TinyWorld) -> None:
    published.verify()
    assert (published.paths.evidence / RELEASE_BUNDLE).read_bytes() == bundle_of(published)
    digest = repository(published, REPAIR).tags[DATE].removeprefix("sha256:")
    for report in ("report.md", "report.html"):
        text = (published.paths.evidence / report).read_text()
        assert "cosign verify-blob-attestation --type" in text
        assert f"--bundle {RELEASE_BUNDLE} " in text
        assert f"--digest {digest} --digestAlg sha256" in text
        assert f"{published.registry.host}/releases/release:{DATE}" in text


def list_again(folder: Path) -> None:
    index = json.loads((folder / INDEX).read_bytes())
    files = {name: data for name, data in files_of(folder).items() if name != INDEX}
    index["files"] = [
        {"path": name, "digest": digest_of(data), "size": len(data)} for name, data in sorted(files.items())
    ]
    write_atomic(folder / INDEX, canonical_json(index))


@pytest.mark.parametrize("change", [drop_an_image, name_another_bundle, name_another_date])
def test_a_review_checks_the_bundle_against_the_images_beside_it(
    published: TinyWorld, change: Callable[[dict[str, Any]], None]
) -> None:
    published.verify()
    assert published.review().bundles == 2 * len(PREDICATE_TYPES) + 1
    resign(published, change)
    (published.paths.evidence / RELEASE_BUNDLE).write_bytes(bundle_of(published))
    list_again(published.paths.evidence)
    with pytest.raises(IntegrityError, match="the release manifest") as caught:
        published.review()
    assert RELEASE_BUNDLE in caught.value.where


def test_a_review_needs_the_bundle(published: TinyWorld) -> None:
    published.verify()
    (published.paths.evidence / RELEASE_BUNDLE).unlink()
    list_again(published.paths.evidence)
    with pytest.raises(IntegrityError, match="does not name this file") as caught:
        published.review()
    assert caught.value.where == RELEASE_BUNDLE


def released(number: int) -> Released:
    digest = digest_of(str(number).encode())
    return Released(f"image-{number}", TAGGED, digest, {"signature": digest, "sbom": digest})


def test_a_statement_is_canonical_and_about_several_images() -> None:
    manifest = make_release_manifest(DATE, "local", "https://example.org/source", [released(1), released(2)])
    statement = make_release_statement(manifest)
    assert canonical_json(json.loads(statement)) == statement
    parsed = load_joint_statement(statement, "test")
    assert parsed.subject_digests == (released(1).digest, released(2).digest)
    assert parsed.predicate == manifest.to_json()
    with pytest.raises(HostileInputError, match="2 subjects"):
        load_statement(statement, "test")


@pytest.mark.parametrize("count", [0, MAX_SUBJECTS + 1])
def test_a_release_of_none_or_too_many_images_is_not_signed(count: int) -> None:
    manifest = make_release_manifest(DATE, "local", "source", [released(number) for number in range(count)])
    with pytest.raises(HostileInputError, match=f"{count} images"):
        make_release_statement(manifest)


def test_its_place_follows_from_the_target(template: TinyWorld) -> None:
    target = template.plan.target
    assert str(release_reference(target, DATE)) == f"{target.registry}/releases/release:{DATE}"
    shared = target.model_copy(update={"repository": "somebody/images"})
    assert str(release_reference(shared, DATE)) == f"{target.registry}/somebody/images:release-{DATE}"
    assert {image.reference for image in template.plan.images}.isdisjoint({release_reference(target, DATE)})


def test_an_artifact_comes_back_as_its_bundle() -> None:
    artifact = make_artifact(b"a bundle", SIGNED_AT)
    assert load_artifact(artifact, "test").digest == digest_of(b"a bundle")
    assert make_artifact(b"a bundle", SIGNED_AT) == artifact


@pytest.mark.parametrize(
    "change",
    [
        {"artifactType": "application/vnd.dev.sigstore.bundle.v0.3+json"},
        {"layers": []},
        {"layers": [{"mediaType": "text/plain", "digest": digest_of(b"x"), "size": 1}]},
        {"config": {"mediaType": OCI_EMPTY, "digest": digest_of(b"x"), "size": 1}},
    ],
)
def test_an_artifact_in_another_form_is_refused(change: dict[str, Any]) -> None:
    document = json.loads(make_artifact(b"a bundle", SIGNED_AT).raw) | change
    with pytest.raises(HostileInputError, match="not a release manifest"):
        load_artifact(Manifest(canonical_json(document), OCI_MANIFEST), "test")


def test_a_bundle_of_a_size_without_end_is_refused() -> None:
    document = json.loads(make_artifact(b"a bundle", SIGNED_AT).raw)
    document["layers"][0]["size"] = 1 << 40
    artifact = Manifest(canonical_json(document), OCI_MANIFEST)
    with pytest.raises(HostileInputError, match="a bundle of"):
        load_artifact(artifact, "test")
