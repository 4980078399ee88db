"""The referrers tag under two writers: a tag has no compare-and-swap, so what was lost must be seen and put back."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from pipeline.adapters.registry import CredentialedRegistry, Credentials
from pipeline.errors import IntegrityError, ServiceError, StageError
from pipeline.model.attachment import EMPTY_CONFIG, make_referrer
from pipeline.model.oci import OCI_INDEX, Descriptor, Manifest, load_index
from pipeline.model.reference import Reference
from tests.fakes.registry_clock import ManualClock
from tests.fakes.registry_content import descriptor_of, make_image, make_index
from tests.fakes.registry_faults import with_header
from tests.fakes.registry_server import PASSWORD, USER, RegistryServer

IMAGE = make_image(b"a layer")
TAG = IMAGE.digest.replace(":", "-")


def bundle_referrer(number: int) -> Manifest:
    return make_referrer(
        IMAGE.descriptor, f"bundle {number}".encode(), "https://example.test/p", "2026-10-12T08:00:00Z"
    )


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with RegistryServer(auth="none") as made:
        repository = made.content.repository("team/image")
        repository.put("1", IMAGE)
        for number in range(10):
            repository.blobs[descriptor_of(f"bundle {number}".encode()).digest] = f"bundle {number}".encode()
        repository.blobs[descriptor_of(EMPTY_CONFIG).digest] = EMPTY_CONFIG
        yield made


def writer(server: RegistryServer, time: ManualClock | None = None) -> CredentialedRegistry:
    more = {"clock": time.clock} if time else {}
    return CredentialedRegistry(Credentials(server.host, USER, PASSWORD), **more)


def reference(server: RegistryServer) -> Reference:
    return Reference(server.host, "team/image")


def listed(server: RegistryServer) -> list[Descriptor]:
    index = server.content.repository("team/image").find(TAG)
    return list(load_index(index.raw, "test").manifests) if index else []


def put_index(server: RegistryServer, *entries: Manifest) -> None:
    server.content.repository("team/image").put(TAG, make_index(*(entry.descriptor for entry in entries)))


def test_a_writer_that_overwrites_us_meanwhile_loses_nothing(server: RegistryServer) -> None:
    ours, theirs = bundle_referrer(1), bundle_referrer(2)
    moves = iter([lambda: put_index(server, theirs)])
    time = ManualClock(on_sleep=lambda: next(moves, lambda: None)())
    writer(server, time).push_referrer(reference(server), ours)
    assert sorted(d.digest for d in listed(server)) == sorted([ours.digest, theirs.digest])


def test_what_was_seen_once_is_put_back(server: RegistryServer) -> None:
    ours, before, theirs = bundle_referrer(1), bundle_referrer(2), bundle_referrer(3)
    put_index(server, before)
    moves = iter([lambda: put_index(server, theirs)])
    time = ManualClock(on_sleep=lambda: next(moves, lambda: None)())
    writer(server, time).push_referrer(reference(server), ours)
    assert {d.digest for d in listed(server)} == {ours.digest, before.digest, theirs.digest}


def test_a_writer_that_never_stops_is_reported(server: RegistryServer) -> None:
    theirs = bundle_referrer(2)
    time = ManualClock(on_sleep=lambda: put_index(server, theirs))
    with pytest.raises(ServiceError, match="another writer") as raised:
        writer(server, time).push_referrer(reference(server), bundle_referrer(1))
    assert raised.value.where.endswith(TAG)
    assert len(time.pauses) == 8


def test_four_writers_at_once_all_get_in(server: RegistryServer) -> None:
    referrers = [bundle_referrer(number) for number in range(4)]
    threads = [
        threading.Thread(target=writer(server).push_referrer, args=(reference(server), referrer))
        for referrer in referrers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [d.digest for d in listed(server)] == sorted(r.digest for r in referrers)


def test_entries_carry_artifact_type_and_annotations_and_keep_their_unknown_fields(server: RegistryServer) -> None:
    theirs = bundle_referrer(2).descriptor.model_copy(update={"annotations": {"k": "v"}})
    foreign = Descriptor.model_validate({**theirs.to_json(), "urls": ["https://example.test/x"]})
    index = make_index(foreign, annotations={"kept": "yes"})
    server.content.repository("team/image").put(TAG, index)
    ours = bundle_referrer(1)
    writer(server, ManualClock()).push_referrer(reference(server), ours)
    by_digest = {entry.digest: entry.to_json() for entry in listed(server)}
    assert by_digest[ours.digest]["artifactType"] == ours.view.artifact_type
    assert by_digest[ours.digest]["annotations"] == ours.view.annotations
    assert by_digest[foreign.digest]["urls"] == ["https://example.test/x"]
    assert b'"kept":"yes"' in server.content.repository("team/image").manifests[tagged(server)].raw


def tagged(server: RegistryServer) -> str:
    return server.content.repository("team/image").tags[TAG]


def test_an_entry_without_its_annotations_is_completed(server: RegistryServer) -> None:
    ours = bundle_referrer(1)
    put_index(server, ours)
    writer(server, ManualClock()).push_referrer(reference(server), ours)
    assert [entry.annotations for entry in listed(server)] == [ours.view.annotations]


def test_an_index_that_is_complete_is_left_alone(server: RegistryServer) -> None:
    registry, time = writer(server, ManualClock()), bundle_referrer(1)
    registry.push_referrer(reference(server), time)
    before = server.count("PUT", TAG)
    registry.push_referrer(reference(server), time)
    assert server.count("PUT", TAG) == before == 1


def test_a_tag_that_holds_an_image_is_not_overwritten(server: RegistryServer) -> None:
    server.content.repository("team/image").put(TAG, IMAGE)
    with pytest.raises(StageError, match="holds"):
        writer(server, ManualClock()).push_referrer(reference(server), bundle_referrer(1))
    assert tagged(server) == IMAGE.digest


def test_a_registry_with_the_api_gets_no_tag(server: RegistryServer) -> None:
    server.referrers_api = True
    writer(server).push_referrer(reference(server), bundle_referrer(1))
    assert listed(server) == []
    ways = writer(server).fetch_referrer_ways(reference(server).with_digest(IMAGE.digest))
    assert ways.api is not None
    assert [d.digest for d in ways.api] == [bundle_referrer(1).digest]
    assert ways.tag is None


def test_both_ways_list_the_same(server: RegistryServer) -> None:
    for number in range(5):
        writer(server, ManualClock()).push_referrer(reference(server), bundle_referrer(number))
    server.referrers_api = True
    ways = writer(server).fetch_referrer_ways(reference(server).with_digest(IMAGE.digest))
    assert ways.api == ways.tag
    assert len(ways.tag or ()) == 5


def test_a_registry_that_names_another_subject_is_refused(server: RegistryServer) -> None:
    server.inject(with_header("OCI-Subject", descriptor_of(b"x").digest), method="PUT", path="/manifests/")
    with pytest.raises(IntegrityError, match="another subject"):
        writer(server).push_referrer(reference(server), bundle_referrer(1))


def test_the_index_is_an_oci_index(server: RegistryServer) -> None:
    writer(server, ManualClock()).push_referrer(reference(server), bundle_referrer(1))
    assert server.content.repository("team/image").manifests[tagged(server)].media_type == OCI_INDEX
