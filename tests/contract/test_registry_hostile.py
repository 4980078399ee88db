"""The real client against a registry that means harm: everything is bounded, and nothing unproven is handed on."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator

import pytest

from pipeline.adapters.registry import AnonymousRegistry, CredentialedRegistry, Credentials, Limits, RetryBudget
from pipeline.errors import AccessError, HostileInputError, IntegrityError, PipelineError
from pipeline.model.oci import DOCKER_MANIFEST, MAX_MANIFEST_BYTES, OCI_INDEX, OCI_MANIFEST, Manifest, Platform
from pipeline.model.reference import Reference
from tests.fakes.registry_clock import ManualClock
from tests.fakes.registry_content import MemoryStore, descriptor_of, make_image, make_index
from tests.fakes.registry_faults import answering, changing, endless, header_bomb, with_header
from tests.fakes.registry_server import PASSWORD, USER, Fault, RegistryServer, Reply

IMAGE = make_image(b"a layer")
OTHER = make_image(b"another layer")
LIMITS = Limits(connect_s=2, answer_s=5)
BUDGET = RetryBudget(attempts=2)


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with RegistryServer(auth="none", referrers_api=True) as made:
        made.content.repository("team/image").put("1", IMAGE)
        made.content.repository("team/image").put("other", OTHER)
        yield made


@pytest.fixture
def reference(server: RegistryServer) -> Reference:
    return Reference(server.host, "team/image", "1")


@pytest.fixture
def reader(server: RegistryServer) -> Iterator[AnonymousRegistry]:
    made = AnonymousRegistry(limits=LIMITS, budget=BUDGET, clock=ManualClock().clock)
    yield made
    made.close()


def serving(raw: bytes, media_type: str = OCI_MANIFEST) -> Fault:
    return answering(200, raw, Content_Type=media_type)


def altered(**fields: object) -> bytes:
    return json.dumps({**json.loads(IMAGE.raw), **fields}).encode()


UNTYPED = json.dumps({name: value for name, value in json.loads(IMAGE.raw).items() if name != "mediaType"}).encode()

MANIFESTS = {
    "deep": (serving(b'{"a":' + b"[" * 100_000, OCI_MANIFEST), "not JSON"),
    "too-long": (serving(b" " * (MAX_MANIFEST_BYTES + 1)), "more than 4194304"),
    "endless": (endless, "more than 4194304"),
    "headers": (header_bomb, "headers"),
    "long-header": (with_header("X-Long", "x" * 70_000), "headers"),
    "not-json": (serving(b"\xff\xfe"), "not JSON"),
    "not-an-object": (serving(b"[]"), "another type"),
    "web-page": (serving(b"<html>log in</html>", "text/html"), "Content-Type is"),
    "no-type": (answering(200, IMAGE.raw), "Content-Type is"),
    "other-type": (serving(IMAGE.raw, DOCKER_MANIFEST), "another type"),
    "index-that-is-a-manifest": (serving(IMAGE.raw, OCI_INDEX), "another type"),
    "schema-1": (serving(altered(schemaVersion=1)), "schemaVersion"),
    "no-config": (serving(altered(config=None)), "config"),
    "negative-size": (serving(altered(config={"mediaType": "x", "digest": IMAGE.digest, "size": -1})), "config.size"),
    "md5": (serving(altered(config={"mediaType": "x", "digest": "md5:" + "0" * 32, "size": 1})), "config.digest"),
    "huge-number": (serving(altered().replace(b'"schemaVersion": 2', b'"schemaVersion": ' + b"9" * 10_000)), "JSON"),
    "redirect-loop": (answering(302, Location="/v2/team/image/manifests/1"), "5 redirects"),
    "redirect-nowhere": (answering(302), "Location of 0"),
    "redirect-to-ftp": (answering(302, Location="ftp://127.0.0.1/"), "malformed URL"),
    "redirect-to-plain-http": (answering(302, Location="http://storage.test/blob"), "unencrypted"),
    "redirect-with-user": (answering(302, Location="https://user:pass@storage.test/"), "user in it"),
    "redirect-with-backslash": (answering(302, Location="https://storage.test\\@127.0.0.1/"), "malformed URL"),
    "redirect-too-long": (answering(302, Location="https://storage.test/" + "x" * 9000), "9021 characters"),
    "untyped-text": (
        serving(UNTYPED, "text/plain"),
        "Content-Type is",
    ),
    "status-299": (answering(299, IMAGE.raw, Content_Type=OCI_MANIFEST), "299"),
}


@pytest.mark.parametrize(("fault", "what"), MANIFESTS.values(), ids=MANIFESTS.keys())
def test_a_hostile_manifest_is_refused(
    server: RegistryServer, reader: AnonymousRegistry, reference: Reference, fault: Fault, what: str
) -> None:
    server.inject(fault, path="/manifests/", times=99)
    started = time.monotonic()
    with pytest.raises(HostileInputError, match=re.escape(what)) as raised:
        reader.fetch_manifest(reference)
    assert time.monotonic() - started < 4
    assert raised.value.where
    assert "Traceback" not in str(raised.value)


def test_other_bytes_under_a_digest_are_refused(
    server: RegistryServer, reader: AnonymousRegistry, reference: Reference
) -> None:
    server.inject(serving(OTHER.raw), path="/manifests/")
    with pytest.raises(IntegrityError, match=OTHER.digest) as raised:
        reader.fetch_manifest(reference.with_digest(IMAGE.digest))
    assert IMAGE.digest in raised.value.what


def test_a_digest_header_that_contradicts_the_bytes_is_refused(
    server: RegistryServer, reader: AnonymousRegistry, reference: Reference
) -> None:
    server.inject(with_header("Docker-Content-Digest", OTHER.digest), path="/manifests/")
    with pytest.raises(IntegrityError):
        reader.fetch_manifest(reference)


@pytest.mark.parametrize("lie", [{"size": 1}, {"media_type": DOCKER_MANIFEST}])
def test_an_index_that_lies_about_its_entry_is_refused(
    server: RegistryServer, reader: AnonymousRegistry, reference: Reference, lie: dict[str, object]
) -> None:
    linux = Platform(os="linux", architecture="amd64")
    entry = IMAGE.descriptor.model_copy(update={"platform": linux, **lie})
    server.content.repository("team/image").put("multi", make_index(entry))
    with pytest.raises(IntegrityError, match="entry"):
        reader.fetch_manifest(reference.with_tag("multi"))


def test_an_index_in_an_index_is_refused(
    server: RegistryServer, reader: AnonymousRegistry, reference: Reference
) -> None:
    linux = Platform(os="linux", architecture="amd64")
    inner = make_index(IMAGE.descriptor.model_copy(update={"platform": linux}))
    outer = make_index(inner.descriptor.model_copy(update={"platform": linux}))
    for tag, index in (("inner", inner), ("outer", outer)):
        server.content.repository("team/image").put(tag, index)
    with pytest.raises(HostileInputError, match="inside an index"):
        reader.fetch_manifest(reference.with_tag("outer"))


def test_a_blob_without_an_end_stops_after_its_size(
    server: RegistryServer, reader: AnonymousRegistry, reference: Reference
) -> None:
    blob = descriptor_of(b"[" * 1000)
    server.content.repository("team/image").blobs[blob.digest] = b"[" * 1000
    server.inject(endless, path="/blobs/")
    with pytest.raises(IntegrityError, match="longer"):
        list(reader.fetch_blob(reference, blob))
    assert reader.received_bytes < 1 << 20


def attached(server: RegistryServer, count: int) -> list[Manifest]:
    made = [make_image(f"r{n}".encode(), subject=IMAGE.descriptor.to_json()) for n in range(count)]
    for manifest in made:
        server.content.repository("team/image").put(manifest.digest, manifest)
    return made


def test_all_pages_of_referrers_are_read(
    server: RegistryServer, reader: AnonymousRegistry, reference: Reference
) -> None:
    made = attached(server, 7)
    found = reader.fetch_referrers(reference.with_digest(IMAGE.digest))
    assert [d.digest for d in found] == sorted(m.digest for m in made)
    assert server.count("GET", "/referrers/") == 4


def relink(link: str) -> Fault:
    def change(reply: Reply) -> None:
        reply.headers["Link"] = link.replace("HERE", f"/v2/team/image/referrers/{IMAGE.digest}")

    return changing(change)


@pytest.mark.parametrize(
    "link",
    [
        '<HERE>; rel="next"',
        '<https://elsewhere.test/v2/>; rel="next"',
        '</v2/other/image/referrers/x?n=2>; rel="next"',
        "nonsense",
        '<HERE?n=1>; rel="next", <HERE?n=2>; rel="next"',
    ],
    ids=["itself", "another-host", "another-list", "malformed", "two"],
)
def test_a_next_page_elsewhere_is_refused(
    server: RegistryServer, reader: AnonymousRegistry, reference: Reference, link: str
) -> None:
    attached(server, 3)
    server.inject(relink(link), path="/referrers/", times=99)
    with pytest.raises(HostileInputError):
        reader.fetch_referrers(reference.with_digest(IMAGE.digest))


def test_endless_pages_are_refused(server: RegistryServer, reader: AnonymousRegistry, reference: Reference) -> None:
    pages = iter(range(10_000))

    def change(reply: Reply) -> None:
        reply.headers["Link"] = f'</v2/team/image/referrers/{IMAGE.digest}?n=0&page={next(pages)}>; rel="next"'

    server.inject(changing(change), path="/referrers/", times=10_000)
    with pytest.raises(HostileInputError, match="pages"):
        reader.fetch_referrers(reference.with_digest(IMAGE.digest))
    assert server.count("GET", "/referrers/") == 100


def test_a_list_that_ends_in_the_middle_is_refused(
    server: RegistryServer, reader: AnonymousRegistry, reference: Reference
) -> None:
    attached(server, 3)
    server.inject(answering(404), path="?n=2")
    with pytest.raises(HostileInputError, match="ends in the middle"):
        reader.fetch_referrers(reference.with_digest(IMAGE.digest))


def test_too_many_referrers_are_refused(
    server: RegistryServer, reader: AnonymousRegistry, reference: Reference
) -> None:
    entries = [{"mediaType": OCI_MANIFEST, "digest": f"sha256:{n:064x}", "size": 1} for n in range(1001)]
    page = json.dumps({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": entries}).encode()
    server.inject(serving(page, OCI_INDEX), path="/referrers/")
    with pytest.raises(HostileInputError, match="1000 referrers"):
        reader.fetch_referrers(reference.with_digest(IMAGE.digest))


def test_a_filter_that_nobody_asked_for_is_refused(
    server: RegistryServer, reader: AnonymousRegistry, reference: Reference
) -> None:
    server.inject(with_header("OCI-Filters-Applied", "artifactType"), path="/referrers/")
    with pytest.raises(HostileInputError, match="filter"):
        reader.fetch_referrers(reference.with_digest(IMAGE.digest))


@pytest.mark.parametrize(
    "fault",
    [
        answering(404),
        answering(400),
        answering(405),
        answering(303, Location="https://docs.example.test/"),
        serving(b"<html>", "text/html"),
    ],
    ids=["404", "400", "405", "303", "html"],
)
def test_every_way_to_lack_the_api_means_the_tag(
    server: RegistryServer, reader: AnonymousRegistry, reference: Reference, fault: Fault
) -> None:
    repository = server.content.repository("team/image")
    repository.put(IMAGE.digest.replace(":", "-"), make_index(OTHER.descriptor))
    server.inject(fault, path="/referrers/")
    assert [d.digest for d in reader.fetch_referrers(reference.with_digest(IMAGE.digest))] == [OTHER.digest]


UPLOADS = {
    "nowhere": answering(202),
    "plain-http": answering(202, Location="http://uploads.test/x"),
    "backslash": answering(202, Location="https://uploads.test\\@evil.test/"),
    "unasked-mount": answering(201),
}


@pytest.mark.parametrize("fault", UPLOADS.values(), ids=UPLOADS.keys())
def test_an_upload_is_not_sent_to_a_bad_place(server: RegistryServer, reference: Reference, fault: Fault) -> None:
    writer = CredentialedRegistry(Credentials(server.host, USER, PASSWORD), limits=LIMITS, budget=BUDGET)
    server.inject(fault, method="POST", path="/uploads/")
    with pytest.raises(HostileInputError):
        writer.push_blob(reference, descriptor_of(b"data"), MemoryStore(b"data"), None)
    assert writer.sent_bytes == 0


@pytest.mark.parametrize(
    "body", [b"", b"[" * 60_000, b'{"errors":[]}', b'{"errors":{"0":1}}', b'{"errors":["x"]}', b"\xff"]
)
def test_an_error_body_may_be_anything(
    server: RegistryServer, reader: AnonymousRegistry, reference: Reference, body: bytes
) -> None:
    server.inject(answering(403, body), path="/manifests/")
    with pytest.raises(AccessError, match="403"):
        reader.fetch_manifest(reference)


def test_an_error_body_without_an_end_is_not_read_to_its_end(
    server: RegistryServer, reader: AnonymousRegistry, reference: Reference
) -> None:
    def change(reply: Reply) -> None:
        reply.status = 400
        reply.body = b"x" * (10 << 20)

    server.inject(changing(change), path="/manifests/")
    with pytest.raises(PipelineError, match="400"):
        reader.fetch_manifest(reference)
