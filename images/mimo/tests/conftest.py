"""The server package, imported from where the images get it, and folders in which an agent of the tests may work.

These tests run as root: commands become another user, owners change. The user's ID is one that nothing else has,
because every process of it is killed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from arena.agent import Agent
from arena.processes import _PR_SET_CHILD_SUBREAPER, _prctl
from arena.shell import ShellRunner
from arena.snapshot import Snapshot, open_snapshot


@pytest.fixture(scope="session", autouse=True)
def _adopt_orphans() -> None:
    """As process 1 of a container: orphans of a command become our children, and are collected at once."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


@pytest.fixture
def agent() -> Agent:
    number = 40_000 + os.getpid() % 20_000
    return Agent(number, number, "test-agent", "/nonexistent")


@pytest.fixture
def ground() -> Iterator[Path]:
    """A folder that other users can reach, on the disk."""
    path = Path(tempfile.mkdtemp(prefix="arena-", dir="/var/tmp"))
    path.chmod(0o755)
    yield path
    subprocess.run(["rm", "-rf", str(path)], check=False)


@pytest.fixture
def workspace(ground: Path, agent: Agent) -> Path:
    path = ground / "repo"
    path.mkdir()
    os.chown(path, agent.uid, agent.gid)
    return path


@pytest.fixture
def runner(workspace: Path, agent: Agent) -> Iterator[ShellRunner]:
    runner = ShellRunner(str(workspace), agent, timeout_s=10)
    yield runner
    runner.close()


@pytest.fixture
def snapshot_of(ground: Path, agent: Agent) -> Iterator[Callable[[Path], Snapshot]]:
    """Packs a folder as the pipeline does and gives it to the agent."""
    opened: list[Snapshot] = []

    def pack(folder: Path) -> Snapshot:
        target = ground / f"snapshot-{len(opened)}.tar"
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, agent.uid, agent.gid, follow_symlinks=False)
            os.utime(path, (1_700_000_000, 1_700_000_000), follow_symlinks=False)
        with tarfile.open(target, "w") as tar:
            for child in sorted(folder.iterdir()):
                tar.add(child, arcname=child.name)
        opened.append(open_snapshot(str(target)))
        return opened[-1]

    yield pack
    for snapshot in opened:
        snapshot.close()
