"""noxw on machines that lack things: a copy of it with its absolute paths in a folder, and programs that take notes."""

from __future__ import annotations

import re
import shlex
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
REAL = ("cat", "chmod", "cksum", "dirname", "env", "flock", "grep", "mkdir", "rm", "sh", "sleep")
DEBIAN = "PRETTY_NAME=Debian\nID=debian\n"
ALL_LOCAL = [
    "ca-certificates",
    "git",
    "docker-registry",
    "debian-archive-keyring",
    "docker-cli",
    "docker.io",
    "iproute2",
]
NOTE = 'echo "{name} $*" >>"$NOTES"\n'
# `python3 -m venv DIR` makes a folder with this same program in it; everything else but `-c` is only noted.
PYTHON = """
[ "$1" = -c ] && {{ [ "$2" = "import nox" ] || exec {real} "$@"; }}
[ "$1" != -c ] || exit 0
[ "$2" != venv ] || {{ mkdir -p "$3/bin" && cat "$0" >"$3/bin/python" && chmod 755 "$3/bin/python"; }}
"""
APT = """
case " $* " in *" install "*) [ -e "$POLICY" ] && echo "services forbidden" >>"$NOTES" ;; esac
exit "${APT_EXIT:-0}"
"""


@dataclass(frozen=True)
class Machine:
    """A folder that noxw takes for a machine."""

    folder: Path

    @property
    def clone(self) -> Path:
        return self.folder / "a clone"

    def add(self, name: str, body: str = "exit 0\n") -> None:
        """A program that takes a note of its arguments."""
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{NOTE.format(name=name)}{body}")
        path.chmod(0o755)

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.clone / "noxw"), *arguments],
            env=self.environment(**variables),
            capture_output=True,
            text=True,
            cwd="/",
            check=False,
            timeout=60,
        )

    def environment(self, **variables: str) -> dict[str, str]:
        fixed = {"PATH": str(self.folder / "bin"), "NOTES": str(self.folder / "notes")}
        return {**fixed, "POLICY": str(self.folder / "policy-rc.d"), **variables}

    @property
    def notes(self) -> list[str]:
        path = self.folder / "notes"
        return path.read_text().splitlines() if path.exists() else []

    def noted(self, start: str) -> list[str]:
        return [note for note in self.notes if note.startswith(start)]

    @property
    def installed(self) -> list[str]:
        """The packages of the one `apt-get install`."""
        (line,) = [note for note in self.noted("apt-get") if " install " in note]
        return line.partition("--no-install-recommends")[2].split()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Debian with Python and nothing else, as root."""
    made = Machine(tmp_path)
    (tmp_path / "bin").mkdir()
    made.clone.mkdir()
    for name in REAL:
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    made.add("id", "echo ${UID_OF_TEST:-0}\n")
    made.add("python3", PYTHON.format(real=shlex.quote(sys.executable)))
    made.add("apt-get", APT)
    made.add("apt-cache")
    (tmp_path / "os-release").write_text(DEBIAN)
    text = (ROOT / "noxw").read_text()
    for absolute in (
        "/usr/sbin/policy-rc.d",
        "/etc/os-release",
        "/var/run/docker.sock",
        "/etc/ssl/certs/ca-certificates.crt",
    ):
        assert text.count(absolute) == 1
        text = text.replace(absolute, str(tmp_path / Path(absolute).name))
    text = text.replace("/usr/share/keyrings/", f"{tmp_path}/").replace(":/usr/sbin:/sbin", "")
    (made.clone / "noxw").write_text(text)
    (made.clone / "noxw").chmod(0o755)
    shutil.copy(ROOT / "noxw.lock", made.clone)
    return made


def test_an_empty_machine_gets_what_a_release_needs(machine: Machine) -> None:
    done = machine.run("-s", "build", "publish", "verify")
    assert done.returncode == 0, done.stderr
    assert machine.installed == ALL_LOCAL
    assert f"installing from this distribution: {' '.join(ALL_LOCAL)}" in done.stderr
    assert machine.notes[-1] == "python3 -m nox -s build publish verify"


def test_no_system_service_is_started_and_the_machine_stays_as_it_was(machine: Machine) -> None:
    machine.run("-s", "build")
    assert "services forbidden" in machine.notes
    assert not (machine.folder / "policy-rc.d").exists()


def test_services_that_the_packages_enabled_are_disabled_and_others_are_not(machine: Machine) -> None:
    body = '[ "$2" != is-enabled ] || {{ [ "$3" = containerd.service ] || grep -q "apt-get.* install" "$NOTES"; }}\n'
    machine.add("systemctl", body.format())
    machine.run("-s", "build")
    disabled = [note.split()[-1] for note in machine.noted("systemctl --quiet disable")]
    assert disabled == ["docker.service", "docker.socket", "docker-registry.service"]


def test_a_policy_of_the_machine_itself_stays(machine: Machine) -> None:
    (machine.folder / "policy-rc.d").write_text("exit 101\n")
    machine.run("-s", "build")
    assert (machine.folder / "policy-rc.d").read_text() == "exit 101\n"


def test_where_an_engine_answers_none_is_installed(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.add("docker")
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(machine.folder)  # a socket's path is short
        listening.bind("docker.sock")
        machine.run("-s", "build")
    assert machine.installed == ["ca-certificates", "git", "docker-registry", "debian-archive-keyring"]


def test_an_engine_that_was_named_is_not_replaced(machine: Machine) -> None:
    machine.add("docker", "exit 1\n")
    machine.run("-s", "build", DOCKER_HOST="tcp://elsewhere:2375")
    assert "docker.io" not in machine.installed


def test_a_socket_behind_which_nobody_answers_is_no_engine(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.add("docker", "exit 1\n")
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(machine.folder)  # a socket's path is short
        listening.bind("docker.sock")
        machine.run("-s", "build")
    assert "docker.io" in machine.installed


def test_tests_need_more(machine: Machine) -> None:
    machine.add("node")
    machine.run("-s", "tests", "--", "-x")
    assert machine.installed == [*ALL_LOCAL, "qemu-user", "skopeo", "chromium", "npm"]
    assert machine.notes[-1] == "python3 -m nox -s tests -- -x"


@pytest.mark.parametrize("arguments", [["--list"], ["-s", "review"], ["-s", "plan", "--", "tests"]])
def test_sessions_without_services_need_little(machine: Machine, arguments: list[str]) -> None:
    machine.run(*arguments)
    assert machine.installed == ["ca-certificates"]


def complete(machine: Machine) -> None:
    for name in ("git", "docker-registry", "docker", "dockerd", "ip"):
        machine.add(name)
    for name in ("ca-certificates.crt", "debian-archive-keyring.gpg"):
        (machine.folder / name).touch()


def test_a_complete_machine_installs_nothing_and_makes_its_environment_once(machine: Machine) -> None:
    complete(machine)
    for _ in range(2):
        assert machine.run("-s", "build").returncode == 0
    assert machine.noted("apt") == []
    assert len(machine.noted("python3 -m venv")) == 1
    assert len([note for note in machine.noted("python3 -m pip") if "--require-hashes" in note]) == 1
    (machine.clone / "noxw.lock").write_text("nox==1\n")
    machine.run("-s", "build")
    assert len(machine.noted("python3 -m venv")) == 2


def test_an_environment_that_was_left_half_made_is_made_again(machine: Machine) -> None:
    complete(machine)
    machine.run("--list")
    (machine.clone / ".venv" / "noxw.stamp").unlink()
    assert machine.run("--list").returncode == 0
    assert len(machine.noted("python3 -m venv")) == 2


def test_an_environment_of_somebody_else_is_left_alone(machine: Machine) -> None:
    complete(machine)
    (machine.clone / ".venv").mkdir()
    done = machine.run("--list")
    assert done.returncode == 5
    assert "was not made by noxw" in done.stderr
    assert list((machine.clone / ".venv").iterdir()) == []


def test_several_at_once_make_one_environment(machine: Machine) -> None:
    complete(machine)
    command, environment = [str(machine.clone / "noxw"), "--list"], machine.environment()
    running = [subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) for _ in range(4)]
    assert [process.wait(30) for process in running] == [0, 0, 0, 0]
    assert len(machine.noted("python3 -m venv")) == 1


def test_without_root_or_leave_it_says_what_to_do(machine: Machine) -> None:
    done = machine.run("-s", "build", UID_OF_TEST="1000")
    assert done.returncode == 5
    assert f"remedy: as root: apt-get install {' '.join(ALL_LOCAL)}" in done.stderr
    assert "unset NOXW_NO_INSTALL" in machine.run("-s", "build", NOXW_NO_INSTALL="1").stderr
    (machine.folder / "os-release").write_text("ID=alpine\n")
    assert "use Debian or Ubuntu" in machine.run("-s", "build").stderr
    assert machine.noted("apt-get") == []


def test_sudo_is_used_where_it_asks_for_no_password(machine: Machine) -> None:
    machine.add("sudo", '[ "$1" != -n ] || exit 0\nexec "$@"\n')
    assert machine.run("-s", "build", UID_OF_TEST="1000").returncode == 0
    assert machine.noted("sudo env DEBIAN_FRONTEND=noninteractive apt-get")
    assert not (machine.folder / "policy-rc.d").exists()


def test_a_failed_installation_stops_and_leaves_no_policy(machine: Machine) -> None:
    done = machine.run("-s", "build", APT_EXIT="100")
    assert done.returncode == 5
    assert "package lists cannot be read" in done.stderr
    assert machine.noted("python3 -m nox") == []
    assert not (machine.folder / "policy-rc.d").exists()


def test_packages_that_a_release_of_the_distribution_lacks_are_left_out(machine: Machine) -> None:
    machine.add("apt-cache", "case $2 in docker-cli | chromium) exit 100 ;; esac\n")
    machine.run("-s", "tests")
    assert "docker-cli" not in machine.installed
    assert "chromium" not in machine.installed
    assert "docker.io" in machine.installed


def test_the_lock_is_of_the_same_nox_as_the_pipelines() -> None:
    pattern = re.compile(r"^([a-z0-9-]+)==(\S+)", re.MULTILINE)
    ours, pipelines = (dict(pattern.findall((ROOT / name).read_text())) for name in ("noxw.lock", "requirements.lock"))
    assert "nox" in ours
    assert ours.items() <= pipelines.items()
    assert set(re.findall(r"--hash=(\w+):", (ROOT / "noxw.lock").read_text())) == {"sha256"}
