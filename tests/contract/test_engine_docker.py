"""The real engine: pulls as a person, what is removed and what never is, limits, and failures."""

from __future__ import annotations

import json
import socketserver
import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import docker
import pytest
import requests

from pipeline.adapters.engine import LABEL, DockerEngine
from pipeline.embedded import services as embedded
from pipeline.embedded.process import wait_until
from pipeline.embedded.services import Services
from pipeline.errors import ConfigError, ServiceError, StorageError
from pipeline.layout import Layout
from pipeline.model.oci import Manifest
from pipeline.model.reference import Reference
from pipeline.ports import ContainerLimits
from tests.fakes.plain_registry_client import push_image
from tests.fakes.tiny import make_tiny_image

pytestmark = pytest.mark.services
LIMITS = ContainerLimits(memory_bytes=64 << 20, cpus=0.5, pids=32)


@pytest.fixture(scope="module")
def api(services: Services) -> Iterator[docker.APIClient]:
    """The engine as someone else uses it."""
    client = docker.APIClient(base_url=embedded.status(services).engine_url, version="auto")
    yield client
    client.close()


@pytest.fixture
def published(services: Services, registry_credentials: tuple[str, str], tmp_path: Path) -> tuple[Reference, Manifest]:
    """An image that only the registry has."""
    layout, manifest = make_tiny_image(tmp_path / "image", marker=f"# {uuid.uuid4()}")
    repository = f"tests/{uuid.uuid4().hex}"
    push_image(services, registry_credentials, repository, layout, manifest)
    return Reference(services.registry, repository, digest=manifest.digest), manifest


def exists(api: docker.APIClient, image: str) -> bool:
    return any(image == found["Id"] for found in api.images())


def test_a_pull_needs_no_credentials_and_uses_none(
    engine: DockerEngine,
    api: docker.APIClient,
    published: tuple[Reference, Manifest],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reference, manifest = published
    wrong = {"auths": {reference.registry: {"auth": "bm9ib2R5Ondyb25n"}}}
    (tmp_path / "config.json").write_text(json.dumps(wrong))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    image_id = engine.pull(reference)
    assert image_id == manifest.view.config.digest
    engine.remove_image(image_id)
    assert not exists(api, image_id)


def test_an_image_that_was_there_before_is_never_removed(
    engine: DockerEngine, api: docker.APIClient, published: tuple[Reference, Manifest]
) -> None:
    reference, _ = published
    api.pull(f"{reference.registry}/{reference.repository}@{reference.digest}")
    image_id = engine.pull(reference)
    engine.remove_image(image_id)
    engine.remove_leftovers()
    assert exists(api, image_id)
    api.remove_image(image_id, force=True)


def test_another_name_of_a_loaded_image_stays(engine: DockerEngine, api: docker.APIClient, tmp_path: Path) -> None:
    image_id = engine.load(*make_tiny_image(tmp_path, marker=f"# {uuid.uuid4()}"), "Named / by: hand")
    api.tag(image_id, "somebody/else", "1")
    engine.remove_image(image_id)
    assert api.inspect_image("somebody/else:1")["RepoTags"] == ["somebody/else:1"]
    api.remove_image("somebody/else:1")
    assert not exists(api, image_id)


def test_only_what_carries_our_label_is_removed(
    services: Services, engine: DockerEngine, api: docker.APIClient, tiny_image: tuple[Layout, Manifest]
) -> None:
    image_id = engine.load(*tiny_image, "labels")
    other = DockerEngine(embedded.status(services).engine_url, "tests-other-workspace")
    foreign = [
        api.create_container(image_id)["Id"],
        api.create_container(image_id, labels={LABEL: "tests-other-workspace"})["Id"],
        api.create_container(image_id, labels={"dev.pipeline.other": "x"})["Id"],
    ]
    network = api.create_network(f"tests-{uuid.uuid4().hex}", labels={LABEL: "tests-other-workspace"})["Id"]
    killed = engine.run(image_id, name="killed", limits=LIMITS)
    left = killed.__enter__().id
    assert engine.remove_leftovers() == 1
    remaining = {container["Id"] for container in api.containers(all=True)}
    assert left not in remaining
    assert set(foreign) <= remaining
    assert other.remove_leftovers() == 2
    assert network not in {found["Id"] for found in api.networks()}
    for container in (foreign[0], foreign[2]):
        api.remove_container(container)
    engine.remove_image(image_id)


def test_a_container_is_served_on_loopback_within_its_limits(
    engine: DockerEngine, api: docker.APIClient, tiny_image: tuple[Layout, Manifest]
) -> None:
    image_id = engine.load(*tiny_image, "limits")
    with engine.run(image_id, name="limits", limits=LIMITS) as container:
        assert container.url.startswith("http://127.0.0.1:")
        assert wait_until(lambda: b"listening" in api.logs(container.id), 10)
        assert requests.get(container.url, timeout=10).text == "ok"
        observed = api.inspect_container(container.id)
        host = observed["HostConfig"]
        assert (host["Memory"], host["MemorySwap"], host["PidsLimit"]) == (64 << 20, 64 << 20, 32)
        assert (host["NanoCpus"], host.get("Init"), host["NetworkMode"], host["Privileged"]) == (
            500_000_000,
            None,
            "bridge",
            False,
        )
        assert [binding["HostIp"] for binding in observed["NetworkSettings"]["Ports"]["8000/tcp"]] == ["127.0.0.1"]
        assert observed["Config"]["Env"] == ["PATH=/bin"]
        container.exec(["sh", "-c", "printf 123456 > /tmp/file"])
        assert container.writable_bytes() == 6
        with pytest.raises(ServiceError, match="did not end in time"):
            container.exec(["sleep", "30"], timeout_s=0.3)
        assert 0 < container.stop() < 5  # its server reacts to the signal: no kill after 10 s
    engine.remove_image(image_id)


def test_an_engine_that_is_not_there_is_a_service_error(tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match="does not answer"):
        DockerEngine(f"unix://{tmp_path}/no.sock", "tests")
    with pytest.raises(ConfigError, match="not a scope"):
        DockerEngine("unix:///run/docker.sock", "Not A Scope")


class _FailingEngine(BaseHTTPRequestHandler):
    """Answers like an engine until it is asked to load, then fails in the way that the server was told."""

    def do_GET(self) -> None:
        self._reply(200, {"ApiVersion": "1.41"})

    def do_POST(self) -> None:
        failure = self.server.failure  # type: ignore[attr-defined]
        if failure == "dies":
            self.connection.close()
            return
        while (size := int(self.rfile.readline(), 16)) > 0:
            self.rfile.read(size + 2)
        self.rfile.readline()
        self._reply(200, {"error": failure})

    def _reply(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Quiet."""


@pytest.mark.parametrize(
    ("failure", "error", "words"),
    [
        ("dies", ServiceError, "does not answer"),
        ("write /x: no space left on device", StorageError, "disk is full"),
        ("something else", ServiceError, "refuses: load"),
    ],
)
def test_a_load_that_fails(
    tiny_image: tuple[Layout, Manifest], failure: str, error: type[Exception], words: str
) -> None:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _FailingEngine) as server:
        server.daemon_threads = True
        server.failure = failure  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        failing = DockerEngine(f"tcp://127.0.0.1:{server.server_address[1]}", "tests")
        with pytest.raises(error, match=words):
            failing.load(*tiny_image, "fails")
        server.shutdown()
