"""Verify, as attack stories over simulators: what lags, lies, lacks or leaks must not pass; evidence is all or none."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.adapters.keyless.bundle import load_outline
from pipeline.errors import (
    AbsentError,
    AccessError,
    IntegrityError,
    PipelineError,
    ServiceError,
    StageError,
    VerificationError,
)
from pipeline.model.attachment import PREDICATE_TYPE
from pipeline.model.attestation import PREDICATE_TYPES, Step
from pipeline.model.oci import Manifest
from pipeline.model.reference import Reference
from pipeline.ports import BlobStore
from pipeline.report.facts import ReleaseFacts
from pipeline.stages.evidence import INPUTS
from tests.fakes.registry_content import Repository, make_image
from tests.fakes.release import (
    DATE,
    REPAIR,
    WORKFLOW,
    KilledError,
    PullingEngine,
    TinyWorld,
    attach_bundle,
    copy_world,
    edit_yaml,
)
from tests.fakes.release import snapshot as files_of
from tests.fakes.signing import FakeSigner, FakeSigstore


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> TinyWorld:
    made = TinyWorld(tmp_path_factory.mktemp("published") / "release")
    made.build()
    made.publish()
    return made


@pytest.fixture
def published(template: TinyWorld, tmp_path: Path) -> TinyWorld:
    return copy_world(template, tmp_path / "release")


@pytest.fixture
def clone(published: TinyWorld) -> TinyWorld:
    """What a stranger has: the repository's files, and the registry."""
    shutil.rmtree(published.paths.state)
    return published


def repository(world: TinyWorld, image: str = REPAIR) -> Repository:
    return world.registry.content.repository(f"releases/{image}")


def digest_of_tag(world: TinyWorld, image: str = REPAIR) -> str:
    return repository(world, image).tags[DATE]


def manifest_of(world: TinyWorld, image: str = REPAIR) -> Manifest:
    return repository(world, image).manifests[digest_of_tag(world, image)]


def verdicts(facts: ReleaseFacts) -> dict[str, str]:
    return {verdict.policy: verdict.outcome for verdict in facts.verdicts if verdict.outcome != "pass"}


def assert_no_evidence(world: TinyWorld) -> None:
    assert not world.paths.evidence.exists()
    assert not world.paths.sbom.exists()


def test_a_stranger_with_a_clone_and_the_registry_verifies_all_of_it(clone: TinyWorld) -> None:
    facts = clone.verify()
    assert facts.passed
    assert verdicts(facts) == {}
    for image in facts.images:
        assert image.manifest.digest == digest_of_tag(clone, image.id)
        blobs = {blob.digest: blob.received_bytes for blob in image.pull.blobs}
        view = image.manifest.view
        assert blobs == {blob.digest: blob.size for blob in (view.config, *view.layers)}
        assert image.pull.engine_image_id == image.pull.person_pull_image_id == image.config.digest
        assert (image.agreement.before_passed, image.agreement.after_passed) == (3, 3)
    assert not [operation for operation, _ in clone.registry.operations if operation.startswith("push")]
    assert isinstance(clone.engine, PullingEngine)
    assert clone.engine.images == {}
    assert sorted(clone.examiner.examined) == sorted((REPAIR, WORKFLOW))


def test_the_states_that_nobody_performs_are_said_to_be_so(clone: TinyWorld) -> None:
    clone.verify()
    states = json.loads((clone.paths.evidence / "state.json").read_bytes())["states"]
    assert states == {
        "publication": "done",
        "local checks": "done",
        "anonymous replay": "done",
        "admission": "not performed",
        "training": "not performed",
        "private evaluation": "not performed",
    }


def test_evidence_is_the_same_bytes_when_it_is_made_again_here_or_elsewhere(
    published: TinyWorld, tmp_path: Path
) -> None:
    published.verify()
    first = files_of(published.paths.evidence)
    published.verify()
    assert files_of(published.paths.evidence) == first
    stranger = copy_world(published, tmp_path / "another place")
    shutil.rmtree(stranger.paths.state)
    shutil.rmtree(stranger.paths.evidence)
    stranger.verify()
    assert files_of(stranger.paths.evidence) == first
    assert files_of(stranger.paths.sbom) == files_of(published.paths.sbom)


def lag(world: TinyWorld) -> None:
    older = make_image(config=b'{"architecture":"amd64","os":"linux","older":true}')
    repository(world).put(older.digest, older)
    world.registry.faults.lagging_tags[DATE] = older.digest


def serve_another_manifest(world: TinyWorld) -> None:
    other = digest_of_tag(world, WORKFLOW)
    repository(world).put(other, manifest_of(world, WORKFLOW))
    world.registry.faults.swapped_manifests[digest_of_tag(world)] = other


def corrupt_a_layer(world: TinyWorld) -> None:
    world.registry.faults.corrupted.add(manifest_of(world).view.layers[1].digest)


def corrupt_the_config(world: TinyWorld) -> None:
    world.registry.faults.corrupted.add(manifest_of(world).view.config.digest)


def truncate_a_layer(world: TinyWorld) -> None:
    world.registry.faults.truncated.add(manifest_of(world).view.layers[-1].digest)


def lose_a_layer(world: TinyWorld) -> None:
    del repository(world).blobs[manifest_of(world).view.layers[0].digest]


def lose_the_tag(world: TinyWorld) -> None:
    del repository(world).tags[DATE]


def make_private(world: TinyWorld) -> None:
    world.registry.faults.is_private = True


def take_down(world: TinyWorld) -> None:
    world.registry.faults.is_down = True


ATTACKS: list[tuple[Callable[[TinyWorld], None], type[PipelineError], str]] = [
    (lag, IntegrityError, "the tag names"),
    (serve_another_manifest, IntegrityError, "the tag names|served"),
    (corrupt_a_layer, IntegrityError, "served other bytes"),
    (corrupt_the_config, IntegrityError, "served other bytes"),
    (truncate_a_layer, ServiceError, "ended after"),
    (lose_a_layer, AbsentError, "404"),
    (lose_the_tag, AbsentError, "404"),
    (make_private, AccessError, "401"),
    (take_down, ServiceError, "no connection"),
]


@pytest.mark.parametrize(("attack", "error", "words"), ATTACKS, ids=[attack.__name__ for attack, _, _ in ATTACKS])
def test_a_registry_that_lies_or_fails_is_refused(
    published: TinyWorld, attack: Callable[[TinyWorld], None], error: type[PipelineError], words: str
) -> None:
    attack(published)
    with pytest.raises(error, match=words) as caught:
        published.verify()
    assert published.registry.host in caught.value.where or str(published.paths.pulled(REPAIR)) in caught.value.where
    assert published.examiner.examined == [], "nothing of it was run"
    assert_no_evidence(published)


def test_a_moved_tag_is_refused_from_committed_evidence_alone(clone: TinyWorld) -> None:
    clone.verify()
    kept = files_of(clone.paths.evidence)
    shutil.rmtree(clone.paths.state)
    lag(clone)
    with pytest.raises(IntegrityError, match="the tag names"):
        clone.verify()
    assert files_of(clone.paths.evidence) == kept


def test_an_unsigned_image_under_the_tag_is_refused_even_without_any_record(clone: TinyWorld) -> None:
    document = json.loads(manifest_of(clone).raw)
    forged = Manifest(
        json.dumps({**document, "annotations": {"made": "by somebody"}}).encode(), manifest_of(clone).media_type
    )
    repository(clone).put(DATE, forged)
    with pytest.raises(IntegrityError, match="attestations are missing: signature, provenance, sbom"):
        clone.verify()
    assert clone.examiner.examined == []
    assert_no_evidence(clone)


@pytest.mark.parametrize("kind", list(PREDICATE_TYPES))
def test_each_kind_of_attestation_is_required(published: TinyWorld, kind: str) -> None:
    published.registry.referrers_api = True
    remove_attestation(published, kind)
    with pytest.raises(IntegrityError, match=f"attestations are missing: {kind}\n"):
        published.verify()
    assert_no_evidence(published)


def remove_attestation(world: TinyWorld, kind: str) -> None:
    held = repository(world)
    [referrer] = [
        each["digest"]
        for each in held.referrers(digest_of_tag(world))
        if each["annotations"][PREDICATE_TYPE] == PREDICATE_TYPES[kind]  # type: ignore[index]
    ]
    del held.manifests[referrer]


def bundle_of(world: TinyWorld, kind: str, image: str = REPAIR) -> bytes:
    """The bundle of a kind that hangs on an image."""
    held = repository(world, image)
    [referrer] = [
        held.manifests[each["digest"]]
        for each in held.referrers(digest_of_tag(world, image))
        if each["annotations"][PREDICATE_TYPE] == PREDICATE_TYPES[kind]  # type: ignore[index]
    ]
    return held.blobs[referrer.view.layers[0].digest]


def replace_bundle(world: TinyWorld, kind: str, bundle: bytes) -> None:
    world.registry.referrers_api = True
    remove_attestation(world, kind)
    attach_bundle(world, REPAIR, bundle, PREDICATE_TYPES[kind])  # type: ignore[index]


@pytest.mark.parametrize(
    ("signer", "step"),
    [
        (FakeSigner(FakeSigstore("another root")), Step.TIMESTAMP),
        (FakeSigner(FakeSigstore(), subject="https://local-sigstore.test/somebody"), Step.IDENTITY),
        (FakeSigner(FakeSigstore(), issuer="http://127.0.0.1:1/oidc"), Step.IDENTITY),
    ],
    ids=["another root", "another identity", "another issuer"],
)
@pytest.mark.parametrize("kind", ["signature", "summary"])
def test_an_attestation_by_somebody_else_is_refused(
    published: TinyWorld, signer: FakeSigner, step: str, kind: str
) -> None:
    payload = load_outline(bundle_of(published, kind)).payload
    replace_bundle(published, kind, signer.sign(payload))
    with pytest.raises(IntegrityError, match=f"the {kind} attestation does not verify") as caught:
        published.verify()
    assert step in caught.value.where
    assert_no_evidence(published)


def test_an_attestation_of_another_image_is_refused(published: TinyWorld) -> None:
    replace_bundle(published, "checks", bundle_of(published, "checks", WORKFLOW))
    with pytest.raises(IntegrityError, match="the checks attestation does not verify") as caught:
        published.verify()
    assert Step.SUBJECT in caught.value.where


def test_two_attestations_of_one_kind_are_refused_even_when_both_hold(published: TinyWorld) -> None:
    payload = load_outline(bundle_of(published, "checks")).payload
    published.sigstore.signed_at = "2026-10-12T09:00:00Z"
    second = attach_bundle(published, REPAIR, FakeSigner(published.sigstore).sign(payload), PREDICATE_TYPES["checks"])
    with pytest.raises(IntegrityError, match="two checks attestations on one digest") as caught:
        published.verify()
    assert second in caught.value.what
    assert published.examiner.examined == []
    assert_no_evidence(published)


def test_an_attestation_under_the_name_of_another_kind_is_refused(published: TinyWorld) -> None:
    replace_bundle(published, "checks", bundle_of(published, "scan"))
    with pytest.raises(IntegrityError, match="the checks attestation does not verify") as caught:
        published.verify()
    assert Step.PREDICATE in caught.value.where


def test_a_changed_bundle_is_refused(published: TinyWorld) -> None:
    outline = json.loads(bundle_of(published, "checks"))
    payload = base64.b64decode(outline["dsseEnvelope"]["payload"]).replace(b'"result":"PASSED"', b'"result":"WARNED"')
    outline["dsseEnvelope"]["payload"] = base64.b64encode(payload).decode()
    replace_bundle(published, "checks", json.dumps(outline).encode())
    with pytest.raises(IntegrityError, match="the checks attestation does not verify") as caught:
        published.verify()
    assert Step.SIGNATURE in caught.value.where


def test_a_foreign_bundle_of_an_unknown_kind_changes_nothing(published: TinyWorld) -> None:
    published.verify()
    before = files_of(published.paths.evidence)
    attach_bundle(published, REPAIR, b"{}", "https://example.org/audit/v1")
    published.verify()
    assert files_of(published.paths.evidence) == before


class LyingEngine(PullingEngine):
    """Reports another image id than that of the bytes it was given, for `lies_on`: load or pull."""

    lies_on = ""

    def load(self, store: BlobStore, manifest: Manifest, name: str) -> str:
        loaded = super().load(store, manifest, name)
        return "sha256:" + "5" * 64 if self.lies_on == "load" else loaded

    def pull(self, reference: Reference) -> str:
        pulled = super().pull(reference)
        return "sha256:" + "5" * 64 if self.lies_on == "pull" else pulled


@pytest.mark.parametrize(("operation", "words"), [("load", "the image loaded"), ("pull", "the image pulled by")])
def test_an_engine_that_has_another_image_is_refused(published: TinyWorld, operation: str, words: str) -> None:
    engine = LyingEngine(registry=published.registry)
    engine.lies_on = operation
    published.engine = engine
    with pytest.raises(IntegrityError, match=words):
        published.verify()
    assert_no_evidence(published)


def test_an_engine_that_dies_is_a_service_error_and_a_rerun_recovers(published: TinyWorld) -> None:
    published.examiner.before = lambda step: published.engine.dies() if step == "check" else None
    with pytest.raises(ServiceError, match="does not answer") as caught:
        published.verify()
    assert (caught.value.exit_code, bool(caught.value.remedy)) == (5, True)
    assert_no_evidence(published)
    assert published.restart().verify().passed


@pytest.mark.parametrize("outcome", ["fail", "error"])
def test_a_check_that_comes_out_otherwise_is_a_disagreement(published: TinyWorld, outcome: str) -> None:
    published.examiner.outcomes["shell"] = outcome  # type: ignore[assignment]
    facts = published.verify()
    assert not facts.passed
    for image in facts.images:
        [found] = image.agreement.disagreements
        assert (found.check, found.before, found.after) == ("shell", "pass", "fail")
    assert verdicts(facts) == {"checks-agree": "fail"}
    assert json.loads((published.paths.evidence / "evidence.json").read_bytes())["verdict"] == "failed"
    assert "DOES NOT PASS" in (published.paths.evidence / "report.md").read_text()
    with pytest.raises(VerificationError, match="does not pass"):
        published.review()


@pytest.mark.parametrize("checks", [("ready", "reset"), ("ready", "reset", "shell", "another")])
def test_a_check_that_ran_only_once_is_a_disagreement(published: TinyWorld, checks: tuple[str, ...]) -> None:
    published.examiner.checks = checks
    facts = published.verify()
    assert not facts.passed
    assert {found.check for image in facts.images for found in image.agreement.disagreements} == set(checks) ^ {
        "ready",
        "reset",
        "shell",
    }


def test_a_leak_in_a_pulled_layer_fails_the_release(clone: TinyWorld) -> None:
    # the verifier's clone knows of a fixture that the publisher had laid into the image
    planted = "".join(f"    answer[{number}] = solve({number * 17})\n" for number in range(30))
    publisher = TinyWorld(clone.root.with_name("publisher"))
    (publisher.root / "images/repair/server/__main__.py").write_text(planted)
    publisher.build()
    publisher.publish()
    (publisher.root / "images/repair/fixtures/solver.py").write_text(planted)
    facts = publisher.verify()
    assert not facts.passed
    assert verdicts(facts) == {"no-fixtures": "fail"}
    assert facts.images[0].scan.leaks[0].path == "opt/arena/arena/__main__.py"


def test_a_policy_that_rejects_fails_the_release(published: TinyWorld) -> None:
    edit_yaml(published.root / "policies/size-budget.yaml", lambda policy: policy["parameters"].update(layers_max=6))
    facts = published.verify()
    assert verdicts(facts) == {"size-budget": "fail"}, "the derived image has seven layers"
    assert not facts.passed


@pytest.mark.parametrize("attack", [corrupt_a_layer, truncate_a_layer, take_down])
def test_a_verify_that_fails_leaves_earlier_evidence_whole(
    published: TinyWorld, attack: Callable[[TinyWorld], None]
) -> None:
    published.verify()
    evidence, sbom = files_of(published.paths.evidence), files_of(published.paths.sbom)
    attack(published)
    with pytest.raises(PipelineError):
        published.verify()
    assert (files_of(published.paths.evidence), files_of(published.paths.sbom)) == (evidence, sbom)


@pytest.mark.parametrize("step", ["scan", "check"])
def test_killed_in_the_middle_earlier_evidence_is_whole_and_a_rerun_recovers(published: TinyWorld, step: str) -> None:
    published.verify()
    evidence = files_of(published.paths.evidence)

    def kill(reached: str) -> None:
        if reached == step:
            raise KilledError

    published.examiner.before = kill
    with pytest.raises(KilledError):
        published.verify()
    assert files_of(published.paths.evidence) == evidence
    published.examiner.before = lambda reached: None
    assert published.verify().passed
    assert files_of(published.paths.evidence) == evidence


def test_a_publication_of_another_build_is_refused(published: TinyWorld) -> None:
    (published.root / "images/repair/server/__main__.py").write_text("print('a later server')\n")
    published.build()
    with pytest.raises(StageError, match="not what was built last") as caught:
        published.verify()
    assert "publish" in caught.value.remedy


def test_committed_evidence_that_is_damaged_is_no_reason_to_trust_the_tag(clone: TinyWorld) -> None:
    clone.verify()
    index = clone.paths.evidence / "evidence.json"
    index.write_bytes(index.read_bytes()[:-30])
    with pytest.raises(StageError, match="not a EvidenceIndex record"):
        clone.verify()


def test_the_evidence_says_what_was_asked(clone: TinyWorld) -> None:
    clone.verify()
    inputs = json.loads((clone.paths.evidence / INPUTS).read_bytes())
    assert [image["image"] for image in inputs["images"]] == [REPAIR, WORKFLOW]
    assert inputs["images"][1]["base"] == f"{clone.registry.host}/releases/{REPAIR}@{digest_of_tag(clone)}"
    assert inputs["target"]["identity"]["subject"] == clone.plan.target.identity.subject
