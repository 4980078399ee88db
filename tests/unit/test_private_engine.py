"""The private engine's decisions that need no engine: networks, names, what is left of a killed one."""

from __future__ import annotations

import dataclasses
import ipaddress
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.embedded import process
from pipeline.embedded.bridge import choose_subnet
from pipeline.embedded.engine import PrivateEngine, engine_answers
from pipeline.embedded.leftovers import container_processes, load_mountinfo, mounts_under
from pipeline.embedded.loopback import describe_holder, port_status, require_free_port
from pipeline.embedded.process import find_processes, observe_process, spawn, terminate, wait_until
from pipeline.embedded.service import Service, ensure, halt, observe
from pipeline.errors import ServiceError

Network = ipaddress.IPv4Network


def test_a_network_that_is_in_use_is_not_taken() -> None:
    assert choose_subnet([], 5) == Network("10.212.5.0/24")
    assert choose_subnet([Network("10.212.5.0/25"), Network("10.212.6.0/24")], 5) == Network("10.212.7.0/24")
    assert choose_subnet([], 2**40 + 511) == Network("10.213.255.0/24")
    with pytest.raises(ServiceError, match="no free network"):
        choose_subnet([Network("10.0.0.0/8")], 5)


def test_two_state_folders_share_no_name_and_sockets_fit(tmp_path: Path) -> None:
    one, other = PrivateEngine(tmp_path / "one"), PrivateEngine(tmp_path / ("deep " * 40))
    assert one.run_path != other.run_path
    assert one.bridge != other.bridge
    assert len(other.bridge) <= 15
    assert len(str(other.run_path / "docker" / "libnetwork" / "0123456789ab.sock")) < 107


def test_mountinfo_is_parsed_with_its_escapes() -> None:
    text = r"36 35 98:0 /a\040b /mnt/c\134d rw,noatime master:1 - overlay overlay rw,upperdir=/x\040y/diff"
    (mount,) = load_mountinfo(text)
    assert (mount.root, mount.point, mount.options) == ("/a b", r"/mnt/c\d", "rw,upperdir=/x y/diff")


def test_only_mounts_and_roots_of_the_folder_count(tmp_path: Path) -> None:
    assert mounts_under(tmp_path) == ()
    assert "/proc" in mounts_under(Path("/proc"))
    assert container_processes(tmp_path) == ()


def test_addresses_of_engines(tmp_path: Path) -> None:
    assert not engine_answers(f"unix://{tmp_path}/none.sock")
    assert not engine_answers("tcp://127.0.0.1:1")
    with pytest.raises(ServiceError, match="not supported"):
        engine_answers("ssh://host")


def test_a_taken_port_names_its_holder() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = held.getsockname()[1]
        with pytest.raises(ServiceError, match=f"port {port} is taken; the registry needs it") as caught:
            require_free_port(port, "registry")
        assert f"held by process {os.getpid()} (" in caught.value.where
        assert "python" in caught.value.where
    require_free_port(port, "registry")
    assert describe_holder(port) == "a process that /proc does not show"


@pytest.fixture
def sleeper(tmp_path: Path) -> Service:
    code = "import signal, sys, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"
    marker = ("--marker", str(tmp_path))
    return Service(
        name="sleeper",
        program=sys.executable,
        package="python3",
        arguments=("-c", code, *marker),
        marker=marker,
        folder=tmp_path,
        log_path=tmp_path / "log",
        is_ready=lambda: bool(find_processes(marker)),
        stop_grace_s=0.3,
    )


def test_a_service_is_found_by_its_arguments_and_stopped_against_its_will(sleeper: Service) -> None:
    assert observe(sleeper, "here").state == "stopped"
    ensure(sleeper)
    wait_until(lambda: observe(sleeper, "here").state == "ready", 5)
    (first,) = find_processes(sleeper.marker)
    ensure(sleeper)
    assert find_processes(sleeper.marker) == (first,)
    time.sleep(0.2)
    halt(sleeper)
    assert find_processes(sleeper.marker) == ()


def test_what_is_not_installed_can_be_stopped_but_not_started(sleeper: Service) -> None:
    absent = dataclasses.replace(sleeper, program="no-such-program", package="its-package")
    halt(absent)
    assert observe(absent, "here").state == "stopped"
    with pytest.raises(ServiceError, match="no-such-program is not installed"):
        ensure(absent)


def test_a_service_that_cannot_start_says_why(tmp_path: Path) -> None:
    broken = Service(
        name="broken",
        program=sys.executable,
        package="python3",
        arguments=("-c", "raise SystemExit('the disk is on fire')", str(tmp_path)),
        marker=(str(tmp_path),),
        folder=tmp_path,
        log_path=tmp_path / "log",
        is_ready=lambda: False,
        start_timeout_s=20,
    )
    started = time.monotonic()
    with pytest.raises(ServiceError, match="the broken did not start") as caught:
        ensure(broken)
    assert "the disk is on fire" in caught.value.where
    assert time.monotonic() - started < 10


def test_a_number_that_another_process_took_over_is_left_alone() -> None:
    other = subprocess.Popen(["sleep", "30"])
    try:
        seen = observe_process(other.pid)
        assert seen is not None
        terminate([process.Running(seen.pid, seen.started - 1, seen.argv)])
        assert other.poll() is None
        terminate([seen])
        assert observe_process(other.pid) is None  # a zombie until its parent waits
    finally:
        other.wait()


def test_a_process_of_another_user_is_named() -> None:
    code = (
        "import os, sys; from pipeline.embedded.process import observe_process, terminate\n"
        "os.setuid(65534); terminate([observe_process(int(sys.argv[1]))])"
    )
    other = subprocess.Popen(["sleep", "30"])
    try:
        command = [sys.executable, "-c", code, str(other.pid)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
    expected = "a service was started by another user" if os.geteuid() == 0 else "Operation not permitted"
    assert expected in done.stderr


def test_a_service_does_not_get_this_shells_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGISTRY_AUTH", "none")
    spawn(["env"], tmp_path / "log", folder=tmp_path)
    assert wait_until(lambda: "HOME=" in (tmp_path / "log").read_text(), 5)
    assert "REGISTRY_AUTH" not in (tmp_path / "log").read_text()


def test_a_program_that_is_not_installed_names_its_package() -> None:
    with pytest.raises(ServiceError, match="no-such-program is not installed") as caught:
        process.find_program("no-such-program", "its-package")
    assert "its-package" in caught.value.remedy
    assert port_status(1, "/") is None
