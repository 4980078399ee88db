"""Real services for the tests that are marked `services`: one set for all sessions that run at the same time.

They listen from port 5720 on and keep their state in `.pipeline/tests`, beside a release's own (5710). The engine is
DOCKER_HOST, else the machine's, else the one that a release has started, else one of their own.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from pipeline.adapters.engine import IMAGE_PREFIX, LABEL, DockerEngine
from pipeline.embedded import services as embedded
from pipeline.embedded.engine import engine_answers
from pipeline.embedded.services import Services
from pipeline.errors import LockedError
from pipeline.files import make_private_folder
from pipeline.layout import Layout
from pipeline.model.oci import Manifest
from tests.fakes.tiny import make_tiny_image

# In the background of a shell the test run ignores Ctrl-C, and so would every process that these tests interrupt: a
# signal with a handler is reset in a child, an ignored one is not.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parent.parent
RELEASE_STATE = ROOT / ".pipeline" / "services"
TEST_STATE = ROOT / ".pipeline" / "tests"
TEST_PORT = 5720
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
SCOPE = f"tests-{hashlib.sha256(os.fsencode(ROOT)).hexdigest()[:8]}-"


def _engine_url() -> str | None:
    release = Services(RELEASE_STATE).private_engine.url
    return os.environ.get("DOCKER_HOST") or (release if engine_answers(release) else None)


def _start(description: Services) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            embedded.start(description)
        except LockedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


@pytest.fixture(scope="session")
def services() -> Iterator[Services]:
    """Running services. The first of the sessions that use them sweeps, the last stops them."""
    description = Services(TEST_STATE, TEST_PORT, _engine_url())
    users = os.open(make_private_folder(TEST_STATE) / "users.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        alone = _is_alone(users)
        fcntl.flock(users, fcntl.LOCK_SH)
        _start(description)
        if alone:
            _sweep(embedded.status(description).engine_url)
        yield description
    finally:
        if _is_alone(users):
            embedded.stop(description)
        os.close(users)


def _is_alone(users: int) -> bool:
    """Whether no other session uses the services; then the lock is held exclusively."""
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sweep(engine_url: str) -> None:
    """Remove what sessions of this clone left that were killed."""
    client = docker.APIClient(base_url=engine_url, version="auto")
    scopes = {container["Labels"][LABEL] for container in client.containers(all=True, filters={"label": LABEL})}
    tags = [tag for image in client.images() for tag in image["RepoTags"] or ()]
    scopes |= {tag.split("/")[1] for tag in tags if tag.startswith(f"{IMAGE_PREFIX}/")}
    client.close()
    for scope in scopes:
        if scope.startswith(SCOPE):
            left = DockerEngine(engine_url, scope)
            left.remove_leftovers()
            left.close()


@pytest.fixture(scope="session")
def engine(services: Services) -> Iterator[DockerEngine]:
    """The engine of the services, in a scope of this process; nothing of it stays."""
    real = DockerEngine(embedded.status(services).engine_url, f"{SCOPE}{os.getpid()}")
    yield real
    real.remove_leftovers()
    real.close()


@pytest.fixture(scope="session")
def registry_credentials(services: Services) -> tuple[str, str]:
    """User and password that may push to the services' registry."""
    return embedded.credentials(services)


@pytest.fixture(scope="session")
def tiny_image(tmp_path_factory: pytest.TempPathFactory) -> tuple[Layout, Manifest]:
    """A small image that runs: perl, a shell, and an HTTP server on port 8000."""
    return make_tiny_image(tmp_path_factory.mktemp("tiny"))
