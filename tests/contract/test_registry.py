"""The registry ports: the simulator, the real client over a scripted server, and over Debian's docker-registry."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from pipeline.adapters.registry import AnonymousRegistry, CredentialedRegistry, Credentials
from pipeline.errors import AbsentError, AccessError, HostileInputError, IntegrityError, ServiceError, StageError
from pipeline.model.attachment import EMPTY_CONFIG, is_bundle, load_referrer, make_referrer
from pipeline.model.oci import OCI_CONFIG, OCI_EMPTY, SIGSTORE_BUNDLE, Descriptor, Manifest, Platform
from pipeline.model.reference import Reference
from pipeline.ports import PullRegistry, PushRegistry
from tests.fakes.registry import Simulation
from tests.fakes.registry_content import MemoryStore, descriptor_of, make_image, make_index
from tests.fakes.registry_server import PASSWORD, USER, RegistryServer

CONFIG = b'{"architecture":"amd64","os":"linux"}'
LAYER = bytes(range(256)) * 3000
ABSENT = "sha256:" + "0" * 64
SIGNED_AT = "2026-10-12T08:00:00Z"


@dataclass
class Registries:
    """One registry: a client of each kind, and a fresh repository in it."""

    anonymous: PullRegistry
    publisher: PushRegistry
    stranger: PushRegistry
    reference: Reference

    def push(self, *layers: bytes, **more: Any) -> Manifest:
        """Blobs and manifest of an image, by digest."""
        store = MemoryStore(CONFIG, *layers)
        for data in layers:
            self.publisher.push_blob(self.reference, descriptor_of(data), store, None)
        self.publisher.push_blob(self.reference, descriptor_of(CONFIG, OCI_CONFIG), store, None)
        manifest = make_image(*layers, config=CONFIG, **more)
        self.publisher.push_manifest(self.reference.with_digest(manifest.digest), manifest)
        return manifest

    def attach(self, subject: Manifest, bundle: bytes, predicate_type: str = "https://example.test/p") -> Manifest:
        """A bundle about an image."""
        referrer = make_referrer(subject.descriptor, bundle, predicate_type, SIGNED_AT)
        store = MemoryStore(EMPTY_CONFIG, bundle)
        for data, media_type in ((EMPTY_CONFIG, OCI_EMPTY), (bundle, SIGSTORE_BUNDLE)):
            self.publisher.push_blob(self.reference, descriptor_of(data, media_type), store, None)
        self.publisher.push_referrer(self.reference, referrer)
        return referrer


def simulated(referrers_api: bool) -> Iterator[Registries]:
    simulation = Simulation(referrers_api=referrers_api)
    reference = Reference(simulation.host, "team/image")
    yield Registries(simulation.anonymous, simulation.publisher, simulation.anonymous, reference)


def real_clients(host: str, user: str, password: str) -> Iterator[Registries]:
    anonymous = AnonymousRegistry()
    publisher = CredentialedRegistry(Credentials(host, user, password))
    stranger = CredentialedRegistry(Credentials(host, user, "not the password"))
    yield Registries(anonymous, publisher, stranger, Reference(host, f"team/image-{uuid.uuid4().hex[:12]}"))
    for client in (anonymous, publisher, stranger):
        client.close()


def scripted(referrers_api: bool) -> Iterator[Registries]:
    with RegistryServer(referrers_api=referrers_api) as server:
        yield from real_clients(server.host, USER, PASSWORD)


MAKERS: dict[str, Callable[[], Iterator[Registries]]] = {
    "simulated": lambda: simulated(False),
    "simulated-referrers-api": lambda: simulated(True),
    "scripted": lambda: scripted(False),
    "scripted-referrers-api": lambda: scripted(True),
}


@pytest.fixture(params=[*MAKERS, pytest.param("debian", marks=pytest.mark.services)])
def registries(request: pytest.FixtureRequest) -> Iterator[Registries]:
    if request.param == "debian":
        user, password = request.getfixturevalue("registry_credentials")
        maker: Iterator[Registries] = real_clients(request.getfixturevalue("services").registry, user, password)
    else:
        maker = MAKERS[request.param]()
    with contextmanager(lambda: maker)() as made:
        yield made


def test_an_image_reads_back_byte_for_byte_by_digest_and_by_tag(registries: Registries) -> None:
    manifest = registries.push(LAYER)
    pinned, tagged = registries.reference.with_digest(manifest.digest), registries.reference.with_tag("2026-10-12")
    registries.publisher.push_manifest(tagged, manifest)
    for reference in (pinned, tagged):
        assert registries.anonymous.fetch_manifest(reference) == manifest
    assert b"".join(registries.anonymous.fetch_blob(pinned, descriptor_of(LAYER))) == LAYER


def test_bytes_on_the_wire_are_the_bytes_of_manifests_and_blobs(registries: Registries) -> None:
    manifest = registries.push(LAYER)
    assert registries.publisher.sent_bytes == manifest.compressed_bytes + len(manifest.raw)
    pinned = registries.reference.with_digest(manifest.digest)
    registries.anonymous.fetch_manifest(pinned)
    for blob in (manifest.view.config, *manifest.view.layers):
        list(registries.anonymous.fetch_blob(pinned, blob))
    assert registries.anonymous.received_bytes == manifest.compressed_bytes + len(manifest.raw)


def test_a_blob_is_sent_once_and_mounted_elsewhere(registries: Registries) -> None:
    store, blob = MemoryStore(LAYER), descriptor_of(LAYER)
    other = Reference(registries.reference.registry, registries.reference.repository + "-derived")
    outcomes = [
        registries.publisher.push_blob(registries.reference, blob, store, None),
        registries.publisher.push_blob(registries.reference, blob, store, None),
        registries.publisher.push_blob(other, blob, MemoryStore(), registries.reference.repository),
    ]
    assert outcomes == ["uploaded", "exists", "mounted"]
    assert registries.publisher.sent_bytes == len(LAYER)
    assert b"".join(registries.anonymous.fetch_blob(other, blob)) == LAYER


def test_what_cannot_be_mounted_is_uploaded(registries: Registries) -> None:
    missing = registries.reference.repository + "-never-pushed"
    outcome = registries.publisher.push_blob(registries.reference, descriptor_of(LAYER), MemoryStore(LAYER), missing)
    assert outcome == "uploaded"


def test_an_empty_blob_goes_there_and_back(registries: Registries) -> None:
    blob = descriptor_of(b"")
    registries.publisher.push_blob(registries.reference, blob, MemoryStore(b""), None)
    assert b"".join(registries.anonymous.fetch_blob(registries.reference, blob)) == b""


def test_what_is_not_there_is_absent(registries: Registries) -> None:
    registries.push(LAYER)
    with pytest.raises(AbsentError):
        registries.anonymous.fetch_manifest(registries.reference.with_tag("never"))
    with pytest.raises(AbsentError):
        registries.anonymous.fetch_manifest(registries.reference.with_digest(ABSENT))
    with pytest.raises(AbsentError):
        list(registries.anonymous.fetch_blob(registries.reference, descriptor_of(b"never pushed")))


def test_a_blob_that_the_store_lacks_is_not_pushed(registries: Registries) -> None:
    with pytest.raises(StageError):
        registries.publisher.push_blob(registries.reference, descriptor_of(LAYER), MemoryStore(), None)


def test_a_blob_of_another_size_than_its_descriptor_is_not_pushed(registries: Registries) -> None:
    blob = descriptor_of(LAYER).model_copy(update={"size": len(LAYER) + 1})
    with pytest.raises(StageError, match="bytes, not"):
        registries.publisher.push_blob(registries.reference, blob, MemoryStore(LAYER), None)


def test_a_manifest_is_refused_while_its_blobs_are_missing(registries: Registries) -> None:
    manifest = make_image(b"a layer that nobody pushed")
    with pytest.raises((AbsentError, ServiceError)):
        registries.publisher.push_manifest(registries.reference.with_digest(manifest.digest), manifest)


def test_a_manifest_is_not_put_under_the_digest_of_another(registries: Registries) -> None:
    manifest = registries.push(LAYER)
    sent_bytes = registries.publisher.sent_bytes
    with pytest.raises(IntegrityError):
        registries.publisher.push_manifest(registries.reference.with_digest(ABSENT), manifest)
    assert registries.publisher.sent_bytes == sent_bytes


def test_nobody_pushes_without_the_right_credentials(registries: Registries) -> None:
    with pytest.raises(AccessError):
        registries.stranger.push_blob(registries.reference, descriptor_of(LAYER), MemoryStore(LAYER), None)
    with pytest.raises(AccessError):
        registries.stranger.push_manifest(registries.reference.with_tag("x"), make_image(LAYER))


def platform(os: str, architecture: str, manifest: Manifest) -> Descriptor:
    return manifest.descriptor.model_copy(update={"platform": Platform(os=os, architecture=architecture)})


def test_an_index_resolves_to_linux_amd64(registries: Registries) -> None:
    wanted, other = registries.push(LAYER), registries.push(b"for another machine")
    entries = [platform("linux", "arm64", other), platform("linux", "amd64", wanted)]
    index = make_index(*entries)
    registries.publisher.push_manifest(registries.reference.with_tag("multi"), index)
    assert registries.anonymous.fetch_manifest(registries.reference.with_tag("multi")) == wanted
    assert registries.anonymous.fetch_manifest(registries.reference.with_digest(index.digest)) == wanted


@pytest.mark.parametrize("matches", [0, 2])
def test_an_index_with_no_or_two_matches_is_refused(registries: Registries, matches: int) -> None:
    images = [registries.push(bytes([number]) * 100) for number in range(2)]
    entries = [platform("linux", "amd64" if n < matches else "arm64", image) for n, image in enumerate(images)]
    registries.publisher.push_manifest(registries.reference.with_tag("multi"), make_index(*entries))
    with pytest.raises(HostileInputError, match=f"{matches} linux/amd64"):
        registries.anonymous.fetch_manifest(registries.reference.with_tag("multi"))


def test_bundles_are_attached_listed_and_read_back(registries: Registries) -> None:
    subject = registries.push(LAYER)
    pinned = registries.reference.with_digest(subject.digest)
    assert registries.anonymous.fetch_referrers(pinned) == ()
    attached = [registries.attach(subject, f'{{"bundle":{n}}}'.encode(), f"https://p.test/{n}") for n in range(3)]
    found = registries.anonymous.fetch_referrers(pinned)
    assert [d.digest for d in found] == sorted(m.digest for m in attached)
    assert all(is_bundle(d) for d in found)
    by_digest = {manifest.digest: manifest for manifest in attached}
    for descriptor in found:
        manifest = registries.anonymous.fetch_manifest(pinned.with_digest(descriptor.digest))
        assert manifest == by_digest[descriptor.digest]
        assert descriptor.annotations == manifest.view.annotations
        referrer = load_referrer(manifest, subject.digest)
        bundle = b"".join(registries.anonymous.fetch_blob(pinned, referrer.bundle))
        assert referrer.predicate_type.endswith(bundle.decode()[-2])


def test_both_ways_to_referrers_are_read_where_they_exist(registries: Registries) -> None:
    subject = registries.push(LAYER)
    pinned = registries.reference.with_digest(subject.digest)
    before = registries.anonymous.fetch_referrer_ways(pinned)
    assert (before.api or (), before.tag) == ((), None)
    registries.attach(subject, b"{}\n")
    after = registries.anonymous.fetch_referrer_ways(pinned)
    listed = registries.anonymous.fetch_referrers(pinned)
    assert len(listed) == 1
    assert (after.api, after.tag) == ((listed, None) if before.api is not None else (None, listed))


def test_attaching_again_changes_nothing(registries: Registries) -> None:
    subject = registries.push(LAYER)
    pinned = registries.reference.with_digest(subject.digest)
    registries.attach(subject, b"{}\n")
    before = registries.anonymous.fetch_referrers(pinned)
    registries.attach(subject, b"{}\n")
    assert registries.anonymous.fetch_referrers(pinned) == before
    assert len(before) == 1


def test_a_referrer_has_a_subject(registries: Registries) -> None:
    manifest = registries.push(LAYER)
    with pytest.raises(StageError, match="subject"):
        registries.publisher.push_referrer(registries.reference, manifest)


def test_referrers_belong_to_a_digest(registries: Registries) -> None:
    with pytest.raises(StageError, match="digest"):
        registries.anonymous.fetch_referrers(registries.reference.with_tag("x"))
