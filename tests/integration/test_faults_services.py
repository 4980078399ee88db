"""The tiny release over the real registry, Sigstore and engine: offline review, a tampered registry, a dying engine."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline.adapters.engine import DockerEngine
from pipeline.embedded import engine as embedded_engine
from pipeline.embedded import services as embedded
from pipeline.embedded.engine import PrivateEngine, make_services
from pipeline.embedded.process import SEARCH_PATH, find_processes
from pipeline.embedded.services import Services
from pipeline.errors import IntegrityError, ServiceError
from pipeline.model.digest import hex_of
from pipeline.stages.records import has_record, load_built
from tests.fakes.real_release import RealWorld
from tests.fakes.release import REPAIR, ROOT, WORKFLOW
from tests.fakes.release import snapshot as files_of

pytestmark = pytest.mark.services
OFFLINE = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory, services: Services, module_engine: DockerEngine) -> RealWorld:
    world = RealWorld(tmp_path_factory.mktemp("real") / "release", services, module_engine)
    world.build()
    world.publish()
    assert world.verify().passed
    return world


@pytest.fixture(scope="module")
def module_engine(services: Services) -> Iterator[DockerEngine]:
    """A scope of its own, since what is left over in it is removed between steps."""
    real = DockerEngine(embedded.status(services).engine_url, f"tests-tiny-{os.getpid()}")
    yield real
    real.remove_leftovers()
    real.close()


def review_offline(world: RealWorld, folder: Path) -> subprocess.CompletedProcess[str]:
    """`python -m pipeline review` without network, engine, home or environment."""
    command = [*OFFLINE, sys.executable, "-m", "pipeline", "review", "--release", str(world.release_path), str(folder)]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "DOCKER_HOST": "tcp://127.0.0.1:1"}
    return subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, timeout=60, check=False)


def test_a_review_needs_no_network_no_engine_and_no_credentials(released: RealWorld, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(released.paths.evidence, tmp_path / "evidence"))
    before = files_of(tmp_path)
    done = review_offline(released, folder)
    assert done.returncode == 0, done.stderr
    assert "13 bundles hold" in done.stdout
    assert files_of(tmp_path) == before


def test_a_changed_byte_fails_an_offline_review_and_names_the_file(released: RealWorld, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(released.paths.evidence, tmp_path / "evidence"))
    [bundle] = [path for path in folder.rglob("*provenance*") if REPAIR in str(path)]
    data = bytearray(bundle.read_bytes())
    data[len(data) // 2] ^= 1
    bundle.write_bytes(data)
    done = review_offline(released, folder)
    assert done.returncode == 7
    assert bundle.relative_to(folder).as_posix() in done.stderr


def test_publishing_again_sends_no_blob_and_leaves_one_of_each(released: RealWorld) -> None:
    before = {image: released.anonymous.fetch_referrers(pinned(released, image)) for image in (REPAIR, WORKFLOW)}
    assert {len(found) for found in before.values()} == {6}
    released.publish()
    assert released.publisher.sent_bytes < 20_000, "at most manifests"
    for image, found in before.items():
        assert released.anonymous.fetch_referrers(pinned(released, image)) == found


def pinned(world: RealWorld, image: str):
    return world.plan.image(image).repository.with_digest(load_built(world.paths, image)[0].manifest_digest)


@pytest.mark.parametrize("change", ["flip", "cut"])
def test_a_blob_that_was_changed_in_the_registry_fails_verify(released: RealWorld, change: str) -> None:
    layer = load_built(released.paths, WORKFLOW)[0].layers[-1]
    held = released.services.registry_path / "storage/docker/registry/v2/blobs/sha256" / hex_of(layer.digest)[:2]
    data = held / hex_of(layer.digest) / "data"
    whole, evidence = data.read_bytes(), files_of(released.paths.evidence)
    try:
        data.write_bytes(whole[:-7] if change == "cut" else bytes([*whole[:20], whole[20] ^ 1, *whole[21:]]))
        with pytest.raises((IntegrityError, ServiceError)):
            released.verify()
    finally:
        data.write_bytes(whole)
    assert files_of(released.paths.evidence) == evidence
    assert released.verify().passed
    assert files_of(released.paths.evidence) == evidence


if os.geteuid() == 0 and shutil.which("dockerd", path=SEARCH_PATH) is not None:  # an engine of our own, to kill

    @pytest.fixture(scope="module")
    def private(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateEngine]:
        description = PrivateEngine(tmp_path_factory.mktemp("dying") / "engine")
        embedded_engine.start(description)
        yield description
        embedded_engine.stop(description)

    def kill_at_the_checks(private: PrivateEngine) -> Callable[[str], None]:
        def before(step: str) -> None:
            if step == "check":
                for process in find_processes(make_services(private)[1].marker):
                    os.kill(process.pid, signal.SIGKILL)

        return before

    @pytest.mark.parametrize("stage", ["build", "verify"])
    def test_an_engine_that_is_killed_in_the_middle(
        tmp_path: Path, services: Services, private: PrivateEngine, stage: str
    ) -> None:
        engine = DockerEngine(private.url, "tests-dying")
        world = RealWorld(tmp_path / "release", services, engine)
        if stage == "verify":
            world.build()
            world.publish()
        world.examiner.before = kill_at_the_checks(private)
        with pytest.raises(ServiceError) as caught:
            world.build() if stage == "build" else world.verify()
        assert caught.value.exit_code == 5
        assert caught.value.remedy
        assert not world.paths.evidence.exists()
        assert has_record(world.paths.built(REPAIR)) == (stage == "verify")

        embedded_engine.start(private)
        again = RealWorld(world.root, services, DockerEngine(private.url, "tests-dying"))
        again.build()
        again.publish()
        assert again.verify().passed
        engine.close()
