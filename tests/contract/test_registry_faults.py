"""The real client against a registry that fails for a while: what is retried, resumed, given up, and how it reads."""

from __future__ import annotations

from collections.abc import Iterator
from email.utils import formatdate

import pytest

from pipeline.adapters.registry import AnonymousRegistry, CredentialedRegistry, Credentials, Limits, RetryBudget
from pipeline.errors import AbsentError, AccessError, IntegrityError, PipelineError, ServiceError
from pipeline.model.oci import OCI_CONFIG
from pipeline.model.reference import Reference
from tests.fakes.registry_clock import WALL_S, ManualClock
from tests.fakes.registry_content import MemoryStore, descriptor_of, make_image
from tests.fakes.registry_faults import (
    answering,
    changing,
    continuing,
    corrupting,
    dripping,
    dripping_head,
    ending_after,
    endless_trailers,
    resetting,
    with_header,
)
from tests.fakes.registry_server import PASSWORD, USER, Fault, RegistryServer

CONFIG = b'{"architecture":"amd64","os":"linux"}'
LAYER = bytes(range(256)) * 8000
IMAGE = make_image(LAYER, config=CONFIG)
LIMITS = Limits(connect_s=2, answer_s=0.4, slowest_bytes_per_s=64 << 20)


class Setting:
    """A server with an image, and clients whose clocks only tests move."""

    def __init__(self, server: RegistryServer) -> None:
        self.server, self.time = server, ManualClock()
        self.reference = Reference(server.host, "team/image")
        repository = server.content.repository("team/image")
        repository.blobs |= MemoryStore(CONFIG, LAYER).blobs
        repository.put("1", IMAGE)
        self.budget = RetryBudget(attempts=4, waiting_s=60, first_wait_s=1, longest_wait_s=20)
        clock = self.time.clock
        self.reader = AnonymousRegistry(limits=LIMITS, budget=self.budget, clock=clock)
        credentials = Credentials(server.host, USER, PASSWORD)
        self.writer = CredentialedRegistry(credentials, limits=LIMITS, budget=self.budget, clock=clock)

    def read_layer(self) -> bytes:
        return b"".join(self.reader.fetch_blob(self.reference, descriptor_of(LAYER)))


@pytest.fixture
def setting() -> Iterator[Setting]:
    with RegistryServer() as server:
        made = Setting(server)
        yield made
        made.reader.close()
        made.writer.close()


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_temporary_status_is_retried_with_growing_pauses(setting: Setting, status: int) -> None:
    setting.server.inject(answering(status), path="/manifests/", times=3)
    assert setting.reader.fetch_manifest(setting.reference.with_tag("1")) == IMAGE
    assert setting.time.pauses == [0.75, 1.5, 3.0]


@pytest.mark.parametrize(
    ("status", "error"),
    [(400, ServiceError), (403, AccessError), (404, AbsentError), (405, ServiceError), (409, ServiceError)],
)
def test_a_permanent_status_is_not_retried(setting: Setting, status: int, error: type[PipelineError]) -> None:
    setting.server.inject(answering(status), path="/manifests/")
    with pytest.raises(error) as raised:
        setting.reader.fetch_manifest(setting.reference.with_tag("1"))
    assert setting.time.pauses == []
    assert str(status) in raised.value.what
    assert raised.value.where == str(setting.reference.with_tag("1"))
    assert raised.value.remedy


def test_retry_after_in_seconds_is_obeyed(setting: Setting) -> None:
    setting.server.inject(answering(429, Retry_After="7"), path="/manifests/")
    setting.reader.fetch_manifest(setting.reference.with_tag("1"))
    assert setting.time.pauses == [7.0]


def test_retry_after_as_a_date_is_obeyed(setting: Setting) -> None:
    date = formatdate(WALL_S + setting.time.now_s + 9, usegmt=True)
    setting.server.inject(answering(503, Retry_After=date), path="/manifests/")
    setting.reader.fetch_manifest(setting.reference.with_tag("1"))
    assert setting.time.pauses == [9.0]


def test_an_absurd_retry_after_is_capped(setting: Setting) -> None:
    setting.server.inject(answering(429, Retry_After="99999999999"), path="/manifests/")
    setting.reader.fetch_manifest(setting.reference.with_tag("1"))
    assert setting.time.pauses == [20.0]


def test_the_attempts_are_bounded_and_named(setting: Setting) -> None:
    setting.server.inject(answering(503), path="/manifests/", times=99)
    with pytest.raises(ServiceError, match=r"503.*4 attempts and 5 s of waiting"):
        setting.reader.fetch_manifest(setting.reference.with_tag("1"))
    assert setting.server.count("GET", "/manifests/") == 4 + 1  # one challenge


def test_the_waiting_is_bounded(setting: Setting) -> None:
    reader = AnonymousRegistry(
        budget=RetryBudget(attempts=99, waiting_s=50, longest_wait_s=20), clock=setting.time.clock
    )
    setting.server.inject(answering(429, Retry_After="20"), path="/manifests/", times=99)
    with pytest.raises(ServiceError, match="429"):
        reader.fetch_manifest(setting.reference.with_tag("1"))
    assert sum(setting.time.pauses) == 40


def test_a_registry_that_is_down_says_so() -> None:
    with RegistryServer() as server:
        host = server.host
    time = ManualClock()
    reader = AnonymousRegistry(budget=RetryBudget(attempts=3), clock=time.clock)
    with pytest.raises(ServiceError, match=r"no connection to 127\.0\.0\.1") as raised:
        reader.fetch_manifest(Reference(host, "team/image", "1"))
    assert len(time.pauses) == 2
    assert "nox -s status" in raised.value.remedy


INTERRUPTIONS = {
    "truncated": ending_after(1000),
    "truncated-unannounced": ending_after(1000, announced=False),
    "reset-in-the-middle": ending_after(1000, reset=True),
    "reset-at-once": resetting,
    "slow-drip": dripping(0.02),
    "slow-head": dripping_head,
    "continuing": continuing,
    "unavailable": answering(503),
}


@pytest.mark.parametrize("fault", INTERRUPTIONS.values(), ids=INTERRUPTIONS.keys())
def test_a_blob_survives_an_interruption(setting: Setting, fault: Fault) -> None:
    setting.server.inject(fault, path="/blobs/")
    assert setting.read_layer() == LAYER
    assert len(setting.time.pauses) == 1


def test_a_broken_transfer_resumes_where_it_was(setting: Setting) -> None:
    setting.server.inject(ending_after(1_000_000), path="/blobs/")
    assert setting.read_layer() == LAYER
    assert setting.server.seen[-1].headers["range"] == "bytes=1000000-"
    assert setting.reader.received_bytes == len(LAYER)


def test_a_registry_without_ranges_sends_the_beginning_again(setting: Setting) -> None:
    def ignore_range(reply: object) -> None:
        reply.status, reply.body = 200, LAYER  # type: ignore[attr-defined]
        reply.headers.clear()  # type: ignore[attr-defined]

    setting.server.inject(ending_after(1_000_000), path="/blobs/")
    setting.server.inject(changing(ignore_range), path="/blobs/")
    assert setting.read_layer() == LAYER
    assert setting.reader.received_bytes == len(LAYER) + 1_000_000


def test_a_beginning_that_differs_the_second_time_is_refused(setting: Setting) -> None:
    other = b"x" + LAYER[1:]
    setting.server.inject(ending_after(1_000_000), path="/blobs/")
    setting.server.inject(answering(200, other), path="/blobs/")
    with pytest.raises(IntegrityError, match="second time"):
        setting.read_layer()


def test_a_wrong_range_is_refused(setting: Setting) -> None:
    setting.server.inject(ending_after(1_000_000), path="/blobs/")
    setting.server.inject(with_header("Content-Range", f"bytes 5-{len(LAYER) - 1}/{len(LAYER)}"), path="/blobs/")
    with pytest.raises(IntegrityError, match="another range"):
        setting.read_layer()


def test_a_blob_that_always_breaks_off_is_given_up(setting: Setting) -> None:
    setting.server.inject(ending_after(10), path="/blobs/", times=99)
    with pytest.raises(ServiceError, match="4 attempts"):
        setting.read_layer()


def test_a_flipped_bit_is_an_integrity_error_and_not_retried(setting: Setting) -> None:
    setting.server.inject(corrupting, path="/blobs/")
    with pytest.raises(IntegrityError, match="other bytes"):
        setting.read_layer()
    assert setting.time.pauses == []


@pytest.mark.parametrize("body", [LAYER + b"x", LAYER[:-1]])
def test_a_wrong_content_length_is_refused_before_the_body(setting: Setting, body: bytes) -> None:
    setting.server.inject(answering(200, body), path="/blobs/")
    with pytest.raises(IntegrityError, match="announces"):
        setting.read_layer()
    assert setting.reader.received_bytes == 0


@pytest.mark.parametrize(
    "fault",
    [ending_after(100), endless_trailers, resetting, dripping_head, dripping(0.02), continuing, answering(503)],
    ids=["truncated", "endless-trailers", "reset", "slow-head", "slow-drip", "continuing", "unavailable"],
)
def test_a_manifest_survives_an_interruption(setting: Setting, fault: Fault) -> None:
    setting.server.inject(fault, path="/manifests/")
    assert setting.reader.fetch_manifest(setting.reference.with_tag("1")) == IMAGE
    assert len(setting.time.pauses) == 1


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT"])
@pytest.mark.parametrize("fault", [answering(503), resetting], ids=["unavailable", "reset"])
def test_an_upload_survives_an_interruption(setting: Setting, method: str, fault: Fault) -> None:
    data = b"another layer" * 1000
    setting.server.inject(fault, method=method, path="/blobs/")
    assert setting.writer.push_blob(setting.reference, descriptor_of(data), MemoryStore(data), None) == "uploaded"
    assert setting.server.content.repository("team/image").blobs[descriptor_of(data).digest] == data
    # A PUT whose answer was lost had arrived: the retry finds the blob and does not send it again.
    assert setting.writer.sent_bytes == len(data)


def test_connections_are_kept(setting: Setting) -> None:
    for _ in range(5):
        setting.reader.fetch_manifest(setting.reference.with_tag("1"))
        setting.read_layer()
    assert setting.server.connections == 1


def test_a_manifest_put_survives_an_interruption(setting: Setting) -> None:
    setting.server.inject(resetting, method="PUT", path="/manifests/")
    setting.writer.push_manifest(setting.reference.with_tag("2"), IMAGE)
    assert setting.reader.fetch_manifest(setting.reference.with_tag("2")) == IMAGE


def test_a_registry_that_reports_another_digest_is_refused(setting: Setting) -> None:
    other = descriptor_of(b"other").digest
    setting.server.inject(with_header("Docker-Content-Digest", other), method="PUT", path="/manifests/")
    with pytest.raises(IntegrityError, match="stored"):
        setting.writer.push_manifest(setting.reference.with_tag("2"), IMAGE)
    setting.server.inject(with_header("Docker-Content-Digest", other), method="PUT", path="/blobs/")
    with pytest.raises(IntegrityError, match="stored"):
        setting.writer.push_blob(setting.reference, descriptor_of(b"new"), MemoryStore(b"new"), None)


def test_a_damaged_blob_on_disk_is_an_integrity_error(setting: Setting) -> None:
    blob, store = descriptor_of(b"as built"), MemoryStore()
    store.blobs[blob.digest] = b"as ROTTE"
    with pytest.raises(IntegrityError, match="DIGEST_INVALID"):
        setting.writer.push_blob(setting.reference, blob, store, None)


def test_a_registry_that_takes_damaged_bytes_is_not_believed(setting: Setting) -> None:
    blob, store = descriptor_of(b"as built"), MemoryStore()
    store.blobs[blob.digest] = b"as ROTTE"
    setting.server.inject(answering(201), method="PUT", path="/blobs/")
    with pytest.raises(IntegrityError, match="on disk"):
        setting.writer.push_blob(setting.reference, blob, store, None)


def test_a_blob_that_is_there_with_another_size_is_refused(setting: Setting) -> None:
    setting.server.inject(answering(200, b"xxx"), method="HEAD", path="/blobs/")
    with pytest.raises(IntegrityError, match="with 3 bytes"):
        setting.writer.push_blob(setting.reference, descriptor_of(CONFIG, OCI_CONFIG), MemoryStore(CONFIG), None)


def test_a_refused_mount_becomes_an_upload(setting: Setting) -> None:
    setting.server.refuses_mount = True
    other = Reference(setting.server.host, "team/derived")
    outcome = setting.writer.push_blob(other, descriptor_of(LAYER), MemoryStore(LAYER), "team/image")
    assert outcome == "uploaded"


def test_the_registrys_own_code_and_words_are_in_the_error(setting: Setting) -> None:
    body = b'{"errors":[{"code":"NAME_INVALID","message":"too \\u001b[31mred\\u0007\\nand long ' + b"x" * 5000 + b'"}]}'
    setting.server.inject(answering(400, body), path="/manifests/")
    with pytest.raises(ServiceError) as raised:
        setting.reader.fetch_manifest(setting.reference.with_tag("1"))
    assert "400 NAME_INVALID (too [31mred and long xxx" in raised.value.what
    assert len(raised.value.what) < 400
    assert raised.value.what.isprintable()
