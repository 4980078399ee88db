"""What a reset wipes outside the workspace, and how those places are found."""

from __future__ import annotations

import ctypes
import os
import stat
import subprocess
from pathlib import Path

import pytest
from arena import ipc
from arena.agent import Agent
from arena.cleanup import Cleanup
from arena.identity import as_user
from arena.places import find_writable
from arena.processes import Reaper
from arena.remove import remove, remove_children


@pytest.fixture
def root(ground: Path, agent: Agent) -> Path:
    """A small root of an image."""
    root = ground / "root"
    for name, mode, owner in (
        ("tmp", 0o1777, 0), ("tmp/kept", 0o755, 0), ("etc", 0o755, 0), ("home/agent", 0o755, agent.uid),
        ("opt/secret", 0o700, 0), ("var/group", 0o2775, 0), ("work/repo", 0o755, agent.uid),
    ):  # fmt: skip
        (root / name).mkdir(parents=True)
        (root / name).chmod(mode)
        os.chown(root / name, owner, owner)
    os.chown(root / "var/group", 0, agent.gid)
    (root / "etc/loose").touch()
    (root / "etc/loose").chmod(0o666)
    (root / "etc/fine").touch()
    (root / "home/agent/.profile").touch()
    os.chown(root / "home/agent/.profile", agent.uid, agent.gid)
    (root / "etc/link").symlink_to("/tmp")
    return root


@pytest.fixture
def cleanup(root: Path, agent: Agent) -> Cleanup:
    return Cleanup(agent, str(root / "work/repo"), Reaper(), str(root))


def test_finds_every_place_and_nothing_else(root: Path, agent: Agent) -> None:
    found = find_writable(str(root), agent, frozenset({str(root / "work/repo")}))
    names = [str(Path(place.path).relative_to(root)) for place in found.places]
    assert names == ["home/agent", "tmp", "var/group"]
    assert [place.mode for place in found.places] == [0o755, 0o1777, 0o2775]
    assert found.loose_files == (str(root / "etc/loose"),)


def test_seals_loose_files(root: Path, cleanup: Cleanup) -> None:
    assert len(cleanup.places) == 3
    state = (root / "etc/loose").stat()
    assert (state.st_uid, stat.S_IMODE(state.st_mode)) == (0, 0o644)


def test_wipes_places_and_keeps_what_is_roots(root: Path, cleanup: Cleanup, agent: Agent) -> None:
    assert cleanup.places
    program = (
        "echo x > tmp/f; mkdir -p tmp/d/e; ln -s /etc tmp/l; mkfifo tmp/p; touch tmp/kept/no 2>/dev/null; "
        "echo x > home/agent/.bashrc; mkdir home/agent/.config; echo x > var/group/f; chmod 700 home/agent; "
        "python3 -c \"import os; os.setxattr('home/agent', 'user.x', b'y')\"; true"
    )
    subprocess.run(["/bin/bash", "-c", program], cwd=root, check=True, user=agent.uid, group=agent.gid, extra_groups=[])
    cleanup.run()
    left = sorted(str(path.relative_to(root)) for name in ("tmp", "home", "var") for path in (root / name).rglob("*"))
    assert left == ["home/agent", "tmp/kept", "var/group"]
    assert stat.S_IMODE((root / "home/agent").stat().st_mode) == 0o755
    assert os.listxattr(root / "home/agent") == []
    assert (root / "etc/fine").exists()


def test_an_emptied_place_does_not_tell_that_it_was_used(root: Path, cleanup: Cleanup, agent: Agent) -> None:
    """Neither by its times nor by another name of a file that root owns, where the kernel lets an agent make one."""
    before = [(Path(place.path), Path(place.path).stat().st_mtime_ns) for place in cleanup.places]
    (root / "tmp/kept-file").touch()
    os.link(root / "etc/fine", root / "tmp/message")
    (root / "home/agent/x").touch()
    cleanup.run()
    assert sorted(path.name for path in (root / "tmp").iterdir()) == ["kept", "kept-file"]
    assert [(path, path.stat().st_mtime_ns) for path, _ in before] == before


def test_no_flag_that_an_agent_can_set_stays_on_its_folders(root: Path, cleanup: Cleanup, agent: Agent) -> None:
    """On some file systems an inherited project keeps what lies below from being moved; any of them is a message."""
    program = """
import array, fcntl, os, sys
def flags(descriptor, number, value):
    word = array.array("l", [value])
    fcntl.ioctl(descriptor, number, word)
    return word[0] & 0xffffffff
for path in sys.argv[1:]:
    descriptor = os.open(path, os.O_RDONLY)
    before = flags(descriptor, 0x80086601, 0)
    for bit in range(30):
        try:
            flags(descriptor, 0x40086602, flags(descriptor, 0x80086601, 0) | 1 << bit)
        except OSError:
            pass
    print(before, flags(descriptor, 0x80086601, 0))
"""
    command = ["/usr/bin/python3", "-c", program, str(root / "home/agent")]

    def run() -> list[str]:
        done = subprocess.run(command, check=True, capture_output=True, text=True, user=agent.uid, group=agent.gid)
        return done.stdout.split()

    assert cleanup.places
    (before, changed), _ = run(), cleanup.run()
    assert changed != before
    assert run()[0] == before


def test_wipe_home_leaves_other_places(root: Path, agent: Agent) -> None:
    home = Agent(agent.uid, agent.gid, agent.name, str(root / "home/agent"))
    (root / "tmp/f").touch()
    os.chown(root / "tmp/f", agent.uid, agent.gid)
    Cleanup(home, str(root / "work/repo"), Reaper(), str(root)).wipe_home()
    assert list((root / "home/agent").iterdir()) == []
    assert (root / "tmp/f").exists()


def test_removes_system_v_objects_of_the_agent_only(cleanup: Cleanup, agent: Agent) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    with as_user(agent.uid):
        made = (libc.shmget(0, 4096, 0o600), libc.msgget(0, 0o600), libc.semget(0, 1, 0o600))
    others = libc.shmget(0, 4096, 0o600)
    assert min(made) >= 0
    assert [len(ipc.owned(kind, agent.uid)) for kind in ("shm", "msg", "sem")] == [1, 1, 1]
    cleanup.run()
    assert [ipc.owned(kind, agent.uid) for kind in ("shm", "msg", "sem")] == [[], [], []]
    assert others in ipc.owned("shm", 0)
    libc.shmctl(others, 0, None)


def test_removal_follows_no_link_and_needs_few_descriptors(ground: Path) -> None:
    outside = ground / "outside"
    outside.mkdir()
    (outside / "precious").touch()
    top = ground / "top"
    top.mkdir()
    program = "import os\nfor _ in range(4000):\n    os.mkdir('d'); os.chdir('d')\nos.symlink('/', 'l')"
    subprocess.run(["/usr/bin/python3", "-c", program], cwd=top, check=True)
    (top / "link").symlink_to(outside)
    descriptor = os.open(ground, os.O_RDONLY)
    remove("top", descriptor)
    remove("absent", descriptor)
    os.close(descriptor)
    assert not top.exists()
    assert (outside / "precious").exists()


def test_removal_of_children_keeps_names(ground: Path) -> None:
    for name in ("a", "b", "c"):
        (ground / name).mkdir()
    descriptor = os.open(ground, os.O_RDONLY)
    remove_children(descriptor, frozenset({"b"}))
    os.close(descriptor)
    assert [path.name for path in ground.iterdir()] == ["b"]
