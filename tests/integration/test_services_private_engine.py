"""The private engine: beside another one, killed in every way, and gone when it is stopped."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from pipeline.adapters.engine import DockerEngine
from pipeline.embedded import engine as embedded
from pipeline.embedded.bridge import bridge_exists
from pipeline.embedded.engine import PrivateEngine, engine_answers, make_services
from pipeline.embedded.leftovers import container_processes, mounts_under
from pipeline.embedded.process import SEARCH_PATH, Running, find_processes, wait_until
from pipeline.embedded.services import Services
from pipeline.embedded.services import status as status_of
from pipeline.errors import ServiceError
from pipeline.layout import Layout
from pipeline.model.oci import Manifest
from pipeline.ports import ContainerLimits

pytestmark = pytest.mark.services
POSSIBLE = os.geteuid() == 0 and shutil.which("dockerd", path=SEARCH_PATH) is not None
SHIM_SOCKETS = Path("/run/containerd/s")


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateEngine]:
    description = PrivateEngine(tmp_path_factory.mktemp("private") / "engine with spaces")
    yield description
    if POSSIBLE:
        embedded.stop(description)


def everything_of(private: PrivateEngine) -> dict[str, tuple[Running, ...]]:
    found = {service.name: find_processes(service.marker) for service in make_services(private)}
    shims = find_processes(("-address", str(private.run_path / "containerd.sock")))
    return {**found, "shim": shims, "container": container_processes(private.data_path)}


def kill(processes: tuple[Running, ...]) -> None:
    assert processes
    for process in processes:
        os.kill(process.pid, signal.SIGKILL)


def shim_sockets() -> set[Path]:
    return set(SHIM_SOCKETS.iterdir()) if SHIM_SOCKETS.exists() else set()


if POSSIBLE:

    @pytest.fixture
    def running(private: PrivateEngine, tiny_image: tuple[Layout, Manifest]) -> Iterator[DockerEngine]:
        embedded.start(private)
        client = DockerEngine(private.url, "tests-private")
        yield client
        client.remove_leftovers()
        client.close()

    def run_forever(client: DockerEngine, image: tuple[Layout, Manifest]) -> str:
        """Start a container as a run would that is then killed: its removal never comes."""
        image_id = client.load(*image, "forever")
        context = client.run(image_id, name="forever", limits=ContainerLimits())
        url = context.__enter__().url
        KILLED.append(context)
        return url

    KILLED: list[object] = []

    def test_it_runs_beside_the_engine_of_the_other_tests(
        services: Services, private: PrivateEngine, running: DockerEngine, tiny_image: tuple[Layout, Manifest]
    ) -> None:
        url = run_forever(running, tiny_image)
        assert wait_until(lambda: _serves(url), 10)
        other = status_of(services).engine_url
        assert other != private.url
        assert engine_answers(other)
        before = everything_of(private)
        embedded.start(private)
        assert everything_of(private) == before
        assert running.remove_leftovers() == 1

    @pytest.mark.parametrize(
        "victims",
        [("engine",), ("containerd",), ("shim",), ("engine", "containerd"), ("engine", "containerd", "shim")],
        ids="+".join,
    )
    def test_a_killed_engine_recovers_and_its_containers_do_not_survive(
        private: PrivateEngine, running: DockerEngine, tiny_image: tuple[Layout, Manifest], victims: tuple[str, ...]
    ) -> None:
        url = run_forever(running, tiny_image)
        before = everything_of(private)
        assert len(before["container"]) == 1
        for name in victims:
            kill(before[name])
        embedded.start(private)
        assert engine_answers(private.url)
        assert running.remove_leftovers() == 1
        assert everything_of(private)["container"] == ()
        assert not _serves(url)

    def test_an_engine_that_dies_under_a_container_is_a_service_error(
        private: PrivateEngine, running: DockerEngine, tiny_image: tuple[Layout, Manifest]
    ) -> None:
        image_id = running.load(*tiny_image, "dies")
        with (
            pytest.raises(ServiceError, match="does not answer") as caught,
            running.run(image_id, name="dies", limits=ContainerLimits()) as container,
        ):
            kill(everything_of(private)["engine"])
            container.exec(["id"])
        assert any("until the next run removes it" in note for note in caught.value.__notes__)
        with pytest.raises(ServiceError, match="does not answer"):
            running.load(*tiny_image, "dies")
        embedded.start(private)
        assert running.remove_leftovers() == 1

    def test_an_engine_that_hangs_is_replaced(private: PrivateEngine, running: DockerEngine) -> None:
        (hanging,) = everything_of(private)["engine"]
        os.kill(hanging.pid, signal.SIGSTOP)
        embedded.start(private)
        assert everything_of(private)["engine"] != (hanging,)
        assert engine_answers(private.url)

    @pytest.mark.parametrize("victims", [(), ("engine", "containerd"), ("engine", "containerd", "shim")])
    def test_stop_leaves_nothing_behind(
        private: PrivateEngine, running: DockerEngine, tiny_image: tuple[Layout, Manifest], victims: tuple[str, ...]
    ) -> None:
        sockets = shim_sockets()
        run_forever(running, tiny_image)
        assert mounts_under(private.data_path)
        assert bridge_exists(private.bridge)
        before = everything_of(private)
        for name in victims:
            kill(before[name])
        embedded.stop(private)
        assert not any(everything_of(private).values())
        assert mounts_under(private.state_path, private.run_path) == ()
        assert not bridge_exists(private.bridge)
        assert not private.run_path.exists()
        assert shim_sockets() <= sockets
        embedded.stop(private)
        embedded.start(private)

else:

    def test_without_root_or_its_packages_it_says_what_to_do(private: PrivateEngine) -> None:
        with pytest.raises(ServiceError) as caught:
            embedded.start(private)
        assert "root" in caught.value.remedy or "apt-get install docker.io" in caught.value.remedy


def _serves(url: str) -> bool:
    try:
        return requests.get(url, timeout=2).text == "ok"
    except requests.RequestException:
        return False
