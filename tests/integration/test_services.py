"""The local target's services in bad days: taken ports, killed processes, a second run, wrong credentials."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from pipeline.embedded import services as embedded
from pipeline.embedded.loopback import port_status
from pipeline.embedded.process import find_processes, wait_until
from pipeline.embedded.services import Services, Status
from pipeline.errors import LockedError, ServiceError
from pipeline.files import Lock
from pipeline.layout import Layout
from pipeline.model.oci import Manifest
from tests.conftest import ROOT, WORKER
from tests.fakes.plain_registry_client import ask_token, bearer, push_image

pytestmark = pytest.mark.services
PORT = 5730 + 10 * WORKER


@pytest.fixture(scope="module")
def own(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """Services to be mistreated, on the engine of the others."""
    description = Services(tmp_path_factory.mktemp("own"), PORT, embedded.status(services).engine_url)
    yield description
    embedded.stop(description)


@pytest.fixture
def running(own: Services) -> Status:
    return embedded.start(own)


def pid_of(status: Status, name: str) -> int:
    (pid,) = (service.pid for service in status.services if service.name == name)
    assert pid is not None
    return pid


def processes_of(own: Services) -> list[int]:
    state = str(own.state_path.resolve())
    return [running.pid for running in find_processes(()) if any(part.startswith(state) for part in running.argv)]


def test_everything_runs_and_a_second_start_changes_nothing(own: Services, running: Status) -> None:
    assert running.ready
    assert embedded.start(own) == embedded.status(own) == running
    assert (running.registry, running.sigstore_url) == (f"127.0.0.1:{PORT}", f"http://127.0.0.1:{PORT + 2}")


@pytest.mark.parametrize("name", ["token server", "registry", "Sigstore"])
@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP])
def test_one_that_was_killed_or_hangs_is_replaced(own: Services, running: Status, name: str, blow: int) -> None:
    before = pid_of(running, name)
    os.kill(before, blow)
    if blow == signal.SIGKILL:
        assert wait_until(lambda: not embedded.status(own).ready, 5)
        (found,) = (service for service in embedded.status(own).services if service.name == name)
        assert (found.state, found.pid) == ("stopped", None)
    after = embedded.start(own)
    assert after.ready
    assert pid_of(after, name) != before
    others = {"token server", "registry", "Sigstore"} - {name}
    assert {pid_of(after, other) for other in others} == {pid_of(running, other) for other in others}


def test_all_of_them_killed_at_once_recover_with_the_same_credentials(own: Services, running: Status) -> None:
    credentials = embedded.credentials(own)
    for name in ("token server", "registry", "Sigstore"):
        os.kill(pid_of(running, name), signal.SIGKILL)
    assert embedded.start(own).ready
    assert embedded.credentials(own) == credentials


@pytest.mark.parametrize("after_s", [0.05, 0.2, 0.4])
def test_a_start_that_was_killed_halfway_is_completed_by_the_next(own: Services, after_s: float) -> None:
    embedded.stop(own)
    code = (
        "import sys; from pathlib import Path; from pipeline.embedded.services import Services, start\n"
        "print('go', flush=True); start(Services(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))"
    )
    arguments = [str(own.state_path), str(PORT), str(own.engine_url)]
    starting = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, cwd=ROOT)
    assert starting.stdout is not None
    with starting.stdout:
        starting.stdout.readline()
        try:
            starting.wait(after_s)
        except subprocess.TimeoutExpired:
            starting.kill()
        starting.wait()
    assert embedded.start(own).ready
    assert len(processes_of(own)) == 3


def test_stop_leaves_no_process_and_no_port_and_can_be_repeated(own: Services, running: Status) -> None:
    embedded.stop(own)
    assert processes_of(own) == []
    assert [port_status(PORT + offset, "/") for offset in range(3)] == [None, None, None]
    assert not embedded.status(own).ready
    embedded.stop(own)


@pytest.mark.parametrize(("offset", "name"), [(0, "registry"), (1, "token server"), (2, "Sigstore")])
def test_a_taken_port_is_named_with_its_holder(own: Services, offset: int, name: str) -> None:
    embedded.stop(own)
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", PORT + offset))
        held.listen()
        with pytest.raises(ServiceError, match=f"port {PORT + offset} is taken; the {name} needs it") as caught:
            embedded.start(own)
        assert f"process {os.getpid()} (" in caught.value.where
    assert embedded.start(own).ready


def test_a_second_start_beside_the_first_names_the_holder(own: Services) -> None:
    with Lock(own.state_path / "services.lock", "up"):
        for verb in (embedded.start, embedded.stop):
            with pytest.raises(LockedError) as caught:
                verb(own)
            assert f"`up`, process {os.getpid()} on" in caught.value.where


def test_an_engine_that_was_asked_for_must_answer(own: Services, tmp_path: Path) -> None:
    absent = Services(own.state_path, PORT, f"unix://{tmp_path}/none.sock")
    with pytest.raises(ServiceError, match="no Docker engine answers at unix://") as caught:
        embedded.start(absent)
    assert "unset DOCKER_HOST" in caught.value.remedy


def test_what_is_secret_is_readable_by_its_owner_only(own: Services, running: Status) -> None:
    secrets = [path for path in own.state_path.rglob("*") if path.suffix in (".key", ".pem") or path.name == "password"]
    assert own.registry_path / "password" in secrets
    assert len(secrets) >= 3
    for path in secrets:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    for folder in (own.state_path, own.registry_path, own.sigstore_path):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder


def test_logs_and_command_lines_hold_no_secret(own: Services, running: Status) -> None:
    user, password = embedded.credentials(own)
    ask_token(own, (user, password), "repository:a:pull").raise_for_status()
    ask_token(own, (user, "not-" + password))
    logs = b"".join(path.read_bytes() for path in own.state_path.rglob("*.log"))
    shown = logs.decode(errors="replace") + " ".join(part for found in find_processes(()) for part in found.argv)
    assert password not in shown


def test_only_the_publisher_pushes_and_anyone_pulls(
    own: Services, running: Status, tiny_image: tuple[Layout, Manifest]
) -> None:
    user, password = embedded.credentials(own)
    for credentials in (None, (user, "wrong"), ("other", password)):
        with pytest.raises(requests.HTTPError) as caught:
            push_image(own, credentials, "tests/access", *tiny_image)
        assert caught.value.response.status_code == 401
    push_image(own, (user, password), "tests/access", *tiny_image)
    manifest, scope = tiny_image[1], "repository:tests/access:pull"
    url = f"http://{own.registry}/v2/tests/access/manifests/{manifest.digest}"
    headers = {**bearer(own, None, scope), "Accept": manifest.media_type}
    assert requests.get(url, headers=headers, timeout=10).content == manifest.raw


def test_nothing_else_is_open(own: Services, running: Status, tiny_image: tuple[Layout, Manifest]) -> None:
    credentials = embedded.credentials(own)
    push_image(own, credentials, "tests/closed", *tiny_image)
    registry, digest = f"http://{own.registry}/v2", tiny_image[1].digest
    reply = requests.get(f"{registry}/", timeout=10)
    assert reply.status_code == 401
    assert f'realm="http://127.0.0.1:{PORT + 1}/token"' in reply.headers["WWW-Authenticate"]
    catalog = bearer(own, credentials, "registry:catalog:*")
    assert requests.get(f"{registry}/_catalog", headers=catalog, timeout=10).status_code == 401
    everything = bearer(own, credentials, "repository:tests/closed:pull,push,delete")
    target = f"{registry}/tests/closed/manifests/{digest}"
    assert requests.delete(target, headers=everything, timeout=10).status_code == 401
    elsewhere = bearer(own, None, "repository:tests/other:pull")
    assert requests.get(target, headers=elsewhere, timeout=10).status_code == 401
    forged = {"Authorization": everything["Authorization"][:-4] + "AAAA"}
    assert requests.get(target, headers=forged, timeout=10).status_code == 401
