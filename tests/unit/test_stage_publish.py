"""Publish, over a simulated registry: its order, what interrupts it at every point, and what it must refuse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.derive.statements import load_joint_statement, load_statement
from pipeline.errors import AccessError, IntegrityError, PipelineError, ServiceError, StageError
from pipeline.model.attachment import PREDICATE_TYPE
from pipeline.model.attestation import PREDICATE_TYPES
from pipeline.model.oci import Descriptor, load_index
from pipeline.model.record import canonical_json
from pipeline.model.reference import Reference
from pipeline.stages.records import has_record, load_built, load_published
from tests.fakes.registry_content import Repository, make_image, make_index
from tests.fakes.release import (
    DATE,
    REPAIR,
    WORKFLOW,
    KilledError,
    TinyWorld,
    attach_bundle,
    copy_world,
    edit_yaml,
    snapshot,
    without_registry,
)
from tests.fakes.signing import FakeSigner, FakeSigstore

KINDS = tuple(PREDICATE_TYPES)
STRANGER = FakeSigner(FakeSigstore("somebody else's"))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> TinyWorld:
    made = TinyWorld(tmp_path_factory.mktemp("built") / "release")
    made.build()
    made.registry.operations.clear()
    return made


@pytest.fixture
def built(template: TinyWorld, tmp_path: Path) -> TinyWorld:
    return copy_world(template, tmp_path / "release")


def repository(world: TinyWorld, image: str) -> Repository:
    return world.registry.content.repository(f"releases/{image}")


def digest_of_built(world: TinyWorld, image: str) -> str:
    return load_built(world.paths, image)[0].manifest_digest


def attached(world: TinyWorld, image: str) -> Counter[str]:
    """How many referrers of each predicate type hang on an image."""
    found = repository(world, image).referrers(digest_of_built(world, image))
    return Counter(each["annotations"][PREDICATE_TYPE] for each in found)


def assert_attested_once(world: TinyWorld, image: str) -> None:
    assert attached(world, image) == dict.fromkeys(PREDICATE_TYPES.values(), 1)


def assert_published(world: TinyWorld, *images: str) -> None:
    for image in images or (REPAIR, WORKFLOW):
        assert repository(world, image).tags[DATE] == digest_of_built(world, image)
        assert_attested_once(world, image)
        assert [each.kind for each in load_published(world.paths, image).attestations] == list(KINDS)


def assert_untouched(world: TinyWorld, image: str = REPAIR) -> None:
    assert DATE not in repository(world, image).tags
    assert not has_record(world.paths.published(image))


def test_each_thing_is_pushed_before_what_names_it(built: TinyWorld) -> None:
    built.publish()
    for image in (REPAIR, WORKFLOW):
        mine = [each for each in built.registry.operations if f"/releases/{image}" in each[1]]
        pushes = [(operation, place) for operation, place in mine if operation.startswith("push")]
        digest = digest_of_built(built, image)
        blobs = len(load_built(built.paths, image)[0].layers) + 1
        assert [operation for operation, _ in pushes] == (
            ["push_blob"] * blobs
            + ["push_manifest"]
            + ["push_blob", "push_blob", "push_referrer"] * 6
            + ["push_manifest"]
        )
        assert pushes[blobs][1].endswith(f"@{digest}")
        assert pushes[-1][1].endswith(f":{DATE}")
        read_back = [place for operation, place in mine[: mine.index(pushes[-1])] if operation == "fetch_blob"]
        assert len(read_back) >= len(KINDS), "every bundle is read back before the tag"
    assert_published(built)


def test_what_is_attested_is_about_the_digest_and_the_record_names_it(built: TinyWorld) -> None:
    records = {record.image: record for record in built.publish()}
    *of_images, of_release = built.sigstore.log
    assert len(of_images) == 2 * len(KINDS)
    subjects = Counter(load_statement(statement, "log").subject_digest for statement in of_images)
    both = tuple(digest_of_built(built, image) for image in (REPAIR, WORKFLOW))
    assert load_joint_statement(of_release, "log").subject_digests == both
    assert subjects == {digest_of_built(built, image): len(KINDS) for image in (REPAIR, WORKFLOW)}
    assert records[REPAIR].reference == f"{built.registry.host}/releases/{REPAIR}@{digest_of_built(built, REPAIR)}"
    assert records[REPAIR].tag == DATE


def test_layers_of_the_base_are_mounted_and_not_sent_again(built: TinyWorld) -> None:
    built.publish()
    outcomes = {(place, digest): outcome for place, digest, outcome in built.publisher.outcomes}
    for image, source in ((REPAIR, f"sources/{REPAIR}"), (WORKFLOW, f"releases/{REPAIR}")):
        shared = built.registry.content.repository(source).blobs
        layers = [layer.digest for layer in load_built(built.paths, image)[0].layers]
        kept = [digest for digest in layers if digest in shared]
        assert len(kept) >= 2
        assert {outcomes[f"releases/{image}", digest] for digest in kept} == {"mounted"}
    uploaded = [digest for place, digest, outcome in built.publisher.outcomes if outcome == "uploaded"]
    assert len(uploaded) == len(set(uploaded)) + 2, "only the empty config of bundles is in all three repositories"


def test_publishing_again_sends_nothing_and_signs_nothing(built: TinyWorld) -> None:
    first = built.publish()
    log, before = len(built.sigstore.log), snapshot(built.paths.state)
    assert built.publish() == first
    assert len(built.sigstore.log) == log
    assert {outcome for _, _, outcome in built.publisher.outcomes} == {"exists"}
    assert snapshot(built.paths.state) == before
    assert_published(built)


def die_before(number: int) -> Callable[[str, Reference], None]:
    left = [number]

    def before(operation: str, reference: Reference) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KilledError(operation)

    return before


@pytest.mark.parametrize("image", [REPAIR, WORKFLOW])
def test_killed_at_every_operation_a_rerun_completes_it_once(built: TinyWorld, image: str) -> None:
    whole = copy_world(built, built.root.with_name("undisturbed"))
    for each in (REPAIR, WORKFLOW) if image == WORKFLOW else (REPAIR,):
        whole.registry.operations.clear()
        whole.publish(each)
    total = len(whole.registry.operations)
    assert total > 40
    for number in range(total):
        world = without_registry(built)
        for place in (f"sources/{REPAIR}", *([f"releases/{REPAIR}"] if image == WORKFLOW else [])):
            blobs = whole.registry.content.repository(place).blobs
            world.registry.content.repository(place).blobs.update(blobs)
        world.registry.faults.before = die_before(number)
        with pytest.raises(KilledError) as killed:
            world.publish(image)
        sent, died = world.publisher.outcomes, f"after dying in operation {number}, {killed.value}"
        if DATE in repository(world, image).tags:
            assert_attested_once(world, image)
        world.registry.faults.before = lambda operation, reference: None
        world.publish(image)
        assert_published(world, image)
        assert len(world.sigstore.log) == len(KINDS), f"signed twice {died}"
        uploads = Counter(each[:2] for each in (*sent, *world.publisher.outcomes) if each[2] == "uploaded")
        assert set(uploads.values()) == {1}, f"sent twice {died}"


def test_killed_again_and_again_it_still_ends_with_one_of_each(built: TinyWorld) -> None:
    tries = 0
    while True:
        tries += 1
        built.registry.faults.before = die_before(tries * 3)
        try:
            built.publish()
        except KilledError:
            continue
        break
    assert tries > 5
    assert_published(built)
    assert len(built.sigstore.log) == 2 * len(KINDS) + 1


def test_a_tag_that_names_another_digest_is_refused_and_stays(built: TinyWorld) -> None:
    other = make_image()
    repository(built, REPAIR).put(DATE, other)
    before = dict(repository(built, REPAIR).manifests)
    with pytest.raises(IntegrityError, match=f"the tag already names {other.digest}") as caught:
        built.publish()
    assert "another date" in caught.value.remedy
    assert repository(built, REPAIR).tags == {DATE: other.digest}
    assert repository(built, REPAIR).manifests == before
    assert built.sigstore.log == []


def test_another_build_of_a_published_date_is_refused(built: TinyWorld) -> None:
    built.publish()
    published = repository(built, REPAIR).tags[DATE]
    (built.root / "images/repair/server/__main__.py").write_text("print('a later server')\n")
    built.build()
    assert digest_of_built(built, REPAIR) != published
    with pytest.raises(IntegrityError, match="the tag already names"):
        built.publish()
    assert repository(built, REPAIR).tags[DATE] == published


def test_a_registry_that_serves_other_bytes_gets_no_tag(built: TinyWorld) -> None:
    other = make_image()
    repository(built, REPAIR).put(other.digest, other)
    built.registry.faults.swapped_manifests[digest_of_built(built, REPAIR)] = other.digest
    with pytest.raises(IntegrityError, match="served"):
        built.publish()
    assert_untouched(built)
    assert built.sigstore.log == []


@pytest.mark.parametrize(
    ("fault", "error", "code"), [("denies_push", AccessError, 6), ("is_private", None, 0), ("is_down", ServiceError, 5)]
)
def test_refused_and_down_are_told_apart(
    built: TinyWorld, fault: str, error: type[PipelineError] | None, code: int
) -> None:
    setattr(built.registry.faults, fault, True)
    if error is None:
        built.publish()  # a private registry serves whoever has credentials; verify is what refuses it
        return
    with pytest.raises(error) as caught:
        built.publish()
    assert caught.value.exit_code == code
    assert_untouched(built)
    setattr(built.registry.faults, fault, False)
    built.publish()
    assert_published(built)


@pytest.mark.parametrize("signed", range(len(KINDS)))
def test_a_signer_that_is_down_leaves_no_tag(built: TinyWorld, signed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sign = FakeSigner.sign

    def sign_some(self: FakeSigner, statement: bytes) -> bytes:
        self.sigstore.down = len(self.sigstore.log) >= signed
        return sign(self, statement)

    with monkeypatch.context() as patched:
        patched.setattr(FakeSigner, "sign", sign_some)
        with pytest.raises(ServiceError, match="the log is down"):
            built.publish()
    assert_untouched(built)
    assert attached(built, REPAIR).total() == signed
    built.sigstore.down = False
    built.publish()
    assert_published(built)


def test_a_tampered_journal_is_refused_by_name(built: TinyWorld) -> None:
    built.registry.faults.before = die_before(first_referrer(built))
    with pytest.raises(KilledError):
        built.publish()
    built.registry.faults.before = lambda operation, reference: None
    [journalled] = (built.paths.published(REPAIR) / "journal").iterdir()
    journalled.write_bytes(journalled.read_bytes().replace(b'"payload": "ey', b'"payload": "eX'))
    with pytest.raises(IntegrityError) as caught:
        built.publish()
    assert str(journalled) in caught.value.where
    assert "remove" in caught.value.remedy
    assert_untouched(built)
    journalled.unlink()
    built.publish()
    assert_published(built)


def first_referrer(world: TinyWorld) -> int:
    """How many operations an undisturbed run does before the first referrer is pushed."""
    other = copy_world(world, world.root.with_name("undisturbed"))
    other.publish()
    return next(n for n, (operation, _) in enumerate(other.registry.operations) if operation == "push_referrer")


def statement_of(world: TinyWorld, kind: str) -> bytes:
    return (world.paths.built(REPAIR) / "statements" / f"{kind}.json").read_bytes()


def test_two_attestations_of_one_kind_are_refused_and_both_named(built: TinyWorld) -> None:
    built.publish()
    [first] = [
        each["digest"]
        for each in repository(built, REPAIR).referrers(digest_of_built(built, REPAIR))
        if each["annotations"][PREDICATE_TYPE] == PREDICATE_TYPES["scan"]
    ]
    second = attach_bundle(
        built, REPAIR, FakeSigner(built.sigstore).sign(statement_of(built, "scan")), PREDICATE_TYPES["scan"]
    )
    with pytest.raises(IntegrityError, match="two scan attestations") as caught:
        built.publish()
    assert {first, second} <= set(caught.value.what.replace(",", " ").split())


def keep_the_tag(world: TinyWorld) -> None:
    """The registry was given a referrers API after this was published: the tag is still there."""
    world.publish()
    world.registry.referrers_api = True


def test_referrers_that_are_the_same_both_ways_are_fine(built: TinyWorld) -> None:
    keep_the_tag(built)
    built.publish()
    assert_published(built)


def drop_one(entries: list[Descriptor]) -> list[Descriptor]:
    return entries[1:]


def retype_one(entries: list[Descriptor]) -> list[Descriptor]:
    return [entries[0].model_copy(update={"artifact_type": "text/plain"}), *entries[1:]]


def annotate_one(entries: list[Descriptor]) -> list[Descriptor]:
    return [entries[0].model_copy(update={"annotations": {"another": "one"}}), *entries[1:]]


def add_one(entries: list[Descriptor]) -> list[Descriptor]:
    return [*entries, make_image().descriptor]


@pytest.mark.parametrize("change", [drop_one, retype_one, annotate_one, add_one])
def test_referrers_that_differ_between_api_and_tag_are_refused(
    built: TinyWorld, change: Callable[[list[Descriptor]], list[Descriptor]]
) -> None:
    keep_the_tag(built)
    held, tag = repository(built, REPAIR), digest_of_built(built, REPAIR).replace(":", "-")
    entries = sorted(load_index(held.manifests[held.tags[tag]].raw, tag).manifests, key=lambda entry: entry.digest)
    held.put(tag, make_index(*change(entries)))
    different = make_image().digest if change is add_one else entries[0].digest
    with pytest.raises(IntegrityError, match=f"the referrers API and the referrers tag differ in {different}"):
        built.publish()


def test_a_bundle_of_an_unknown_kind_is_left_alone(built: TinyWorld) -> None:
    built.publish()
    statement = load_statement(statement_of(built, "scan"), "statement").model_dump(mode="json", by_alias=True)
    foreign = canonical_json({**statement, "predicateType": "https://example.org/audit/v1"})
    audit = attach_bundle(built, REPAIR, STRANGER.sign(foreign), "https://example.org/audit/v1")
    built.publish()
    assert audit in repository(built, REPAIR).manifests
    assert attached(built, REPAIR)["https://example.org/audit/v1"] == 1
    assert attached(built, REPAIR).total() == len(KINDS) + 1


def test_an_attestation_that_somebody_else_signed_is_no_reason_to_skip_ours(built: TinyWorld) -> None:
    built.registry.faults.before = die_before(first_referrer(built) + 1)
    with pytest.raises(KilledError):
        built.publish()
    built.registry.faults.before = lambda operation, reference: None
    assert PREDICATE_TYPES["checks"] not in attached(built, REPAIR)
    forged = attach_bundle(built, REPAIR, STRANGER.sign(statement_of(built, "checks")), PREDICATE_TYPES["checks"])
    with pytest.raises(IntegrityError, match="the checks attestation does not verify") as caught:
        built.publish()
    assert forged in caught.value.where
    assert_untouched(built)


def test_what_was_built_from_other_sources_is_not_published(built: TinyWorld) -> None:
    edit_yaml(built.root / "images" / "repair" / "image.yaml", lambda value: value.update(title="Another"))
    with pytest.raises(StageError, match="have changed since this was built") as caught:
        built.publish()
    assert "nox -s build" in str(caught.value)
    assert built.registry.operations == []


def test_what_another_commit_built_is_not_published(built: TinyWorld) -> None:
    built.revision = "f" * 40
    with pytest.raises(StageError, match="have changed since this was built"):
        built.publish()
