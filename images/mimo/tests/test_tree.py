"""A reset against an agent that wants it to miss something: same size and times, mapped writes, links, lists, names."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from arena.agent import Agent
from arena.changetimes import keeps_change_times
from arena.snapshot import Snapshot
from arena.tree import Workspace

Pack = Callable[[Path], Snapshot]


def fill(folder: Path) -> None:
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "src" / "a.py").write_text("a = 1\n" * 2000)
    (folder / "src" / "b.py").write_text("b = 2\n" * 2000)
    (folder / "src" / "deep" / "run.sh").write_text("#!/bin/sh\n")
    (folder / "src" / "deep" / "run.sh").chmod(0o755)
    (folder / "empty").touch()
    (folder / "link").symlink_to("src/a.py")


def state_of(folder: Path) -> dict[str, tuple[object, ...]]:
    """Everything that a reset must bring back, by path."""
    found: dict[str, tuple[object, ...]] = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        state = path.lstat()
        content: object = None
        if stat.S_ISREG(state.st_mode):
            content = (path.read_bytes(), state.st_nlink, state.st_mtime)
        elif path.is_symlink():
            content = path.readlink()
        attributes = os.listxattr(path, follow_symlinks=False)
        found[str(path.relative_to(folder))] = (state.st_mode, state.st_uid, state.st_gid, content, tuple(attributes))
    return found


@pytest.fixture
def ready(workspace: Path, agent: Agent, snapshot_of: Pack) -> Workspace:
    fill(workspace)
    ready = Workspace(str(workspace), snapshot_of(workspace), agent)
    ready.restore()
    ready.settle()
    return ready


def same_size_and_times(folder: Path) -> None:
    path = folder / "src" / "a.py"
    before = path.stat()
    with path.open("r+") as file:
        file.write("a = 7")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def mapped(folder: Path) -> None:
    path = folder / "src" / "a.py"
    before = path.stat()
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
        mapping[0:1] = b"X"
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def swap(folder: Path) -> None:
    first, second = folder / "src" / "a.py", folder / "src" / "b.py"
    first.rename(folder / "x")
    second.rename(first)
    (folder / "x").rename(second)


def exchange_folder(folder: Path) -> None:
    shutil.copytree(folder / "src", folder / "copy", symlinks=True)
    same_size_and_times(folder / "copy" / "..")
    (folder / "src").rename(folder / "old")
    (folder / "copy").rename(folder / "src")
    shutil.rmtree(folder / "old")


def rename_git(folder: Path) -> None:
    (folder / ".git").rename(folder / "git")
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/evil\n")


def rename_and_back(folder: Path) -> None:
    (folder / "src").rename(folder / "other")
    (folder / "other" / "a.py").write_text("evil")
    (folder / "other").rename(folder / "src")


def hard_links(folder: Path) -> None:
    os.link(folder / "src" / "a.py", folder.parent / "outside")
    with (folder.parent / "outside").open("a") as file:
        file.write("evil")


def link_to_root_file(folder: Path) -> None:
    victim = folder.parent / "victim"
    victim.write_text("root's own")
    victim.chmod(0o600)
    (folder / "src" / "a.py").unlink()
    os.link(victim, folder / "src" / "a.py")


def symlinks(folder: Path) -> None:
    shutil.rmtree(folder / "src")
    (folder / "src").symlink_to("/etc")
    (folder / "empty").unlink()
    (folder / "empty").symlink_to("/etc/passwd")
    (folder / "link").unlink()
    (folder / "link").symlink_to("/etc/shadow")


def kinds(folder: Path) -> None:
    (folder / "empty").unlink()
    os.mkfifo(folder / "empty")
    (folder / "link").unlink()
    (folder / "link").mkdir()
    shutil.rmtree(folder / "src" / "deep")
    (folder / "src" / "deep").touch()


def attributes(folder: Path) -> None:
    acl = bytes.fromhex("0200000001000700ffffffff02000700d007000004000500ffffffff10000700ffffffff20000500ffffffff")
    for path in (folder, folder / "src", folder / "src" / "a.py"):
        os.setxattr(path, "user.note", b"x")
        os.setxattr(path, "system.posix_acl_access", acl)
    os.setxattr(folder / "src", "system.posix_acl_default", acl)
    (folder / "src" / "b.py").unlink()


def modes(folder: Path) -> None:
    for path in (folder / "src" / "a.py", folder / "src" / "deep", folder / "src", folder):
        path.chmod(0o000)


def names(folder: Path) -> None:
    for name in (b"new\nline", b"\xff\xfe", b"-rf", b"n" * 255, b"\x1b[31m"):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).touch()


def deep(folder: Path) -> None:
    program = "import os\nfor _ in range(2500):\n    os.mkdir('d'); os.chdir('d')\nopen('end', 'w').close()"
    subprocess.run(["/usr/bin/python3", "-c", program], cwd=folder, check=True)


def everything(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


ATTACKS = (
    same_size_and_times, mapped, swap, exchange_folder, rename_git, rename_and_back, hard_links, link_to_root_file,
    symlinks, kinds, attributes, modes, names, deep, everything,
)  # fmt: skip


@pytest.mark.parametrize("trusts_change_times", [True, False])
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_every_attack_is_undone(
    ready: Workspace, workspace: Path, attack: Callable[[Path], None], trusts_change_times: bool
) -> None:
    before = state_of(workspace)
    attack(workspace)
    ready._keeps_change_times = trusts_change_times
    ready.restore()
    assert state_of(workspace) == before
    ready.settle()
    ready.restore()
    assert ready.restored == ()


def test_an_outside_file_behind_a_link_is_untouched(ready: Workspace, workspace: Path) -> None:
    link_to_root_file(workspace)
    ready.restore()
    victim = workspace.parent / "victim"
    assert victim.read_text() == "root's own"
    assert (victim.stat().st_uid, stat.S_IMODE(victim.stat().st_mode), victim.stat().st_nlink) == (0, 0o600, 1)


def test_only_what_changed_is_put_back(ready: Workspace, workspace: Path) -> None:
    (workspace / "src" / "b.py").write_text("changed")
    (workspace / "added").touch()
    inode = (workspace / "src" / "a.py").stat().st_ino
    ready.restore()
    assert sorted(ready.restored) == ["added", "src/b.py"]
    assert (workspace / "src" / "a.py").stat().st_ino == inode


def test_what_was_read_and_when_is_not_to_be_seen(ready: Workspace, workspace: Path) -> None:
    paths = [workspace / "src" / "a.py", workspace / "link", workspace / "src"]
    for path in paths[:2]:
        path.unlink()
    ready.restore()
    before = [path.lstat().st_atime_ns for path in paths]
    wanted = workspace.stat()
    paths[0].read_text()
    paths[1].readlink()
    list(paths[2].iterdir())
    (workspace / "added").touch()
    assert [path.lstat().st_atime_ns for path in paths] != before
    ready.restore()
    assert [path.lstat().st_atime_ns for path in paths] == before
    assert (workspace.stat().st_mtime_ns, workspace.stat().st_atime_ns) == (wanted.st_mtime_ns, wanted.st_atime_ns)
    assert ready.restored == ("added",)


def test_a_full_disk_holds_no_restore_back(ready: Workspace, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fills it lies behind the first path that must be written."""
    before = state_of(workspace)
    filler, send = workspace / "src" / "deep" / "filler", os.sendfile

    def send_to_a_disk(*arguments: int) -> int:
        if filler.exists():
            raise OSError(errno.ENOSPC, "full")
        return send(*arguments)

    monkeypatch.setattr(os, "sendfile", send_to_a_disk)
    filler.touch()
    (workspace / ".git" / "HEAD").write_text("evil")
    ready.restore()
    after = state_of(workspace)
    assert {path: row[:3] for path, row in after.items()} == {path: row[:3] for path, row in before.items()}


def test_a_write_right_after_the_reset_is_not_missed(ready: Workspace, workspace: Path) -> None:
    wanted = (workspace / "src" / "a.py").read_bytes()
    for _ in range(100):
        ready.settle()
        same_size_and_times(workspace)
        ready.restore()
        assert (workspace / "src" / "a.py").read_bytes() == wanted


def test_a_first_restore_compares_content(workspace: Path, agent: Agent, snapshot_of: Pack) -> None:
    fill(workspace)
    snapshot = snapshot_of(workspace)
    before = state_of(workspace)
    same_size_and_times(workspace)
    (workspace / "link").unlink()
    ready = Workspace(str(workspace), snapshot, agent)
    ready.restore()
    assert sorted(ready.restored) == ["link", "src/a.py"]
    assert {path: row[:3] for path, row in state_of(workspace).items()} == {
        path: row[:3] for path, row in before.items()
    }


def test_a_clock_that_was_set_back_ends_all_trust(
    ready: Workspace, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.tree.time.clock_gettime_ns", lambda clock: 0)
    ready.settle()
    assert ready._table == {}
    same_size_and_times(workspace)
    ready.restore()
    assert "src/a.py" in ready.restored


@pytest.fixture
def memory_folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="arena-", dir="/dev/shm"))
    yield path
    shutil.rmtree(path)


def test_the_probe_believes_a_disk_and_leaves_nothing(ground: Path) -> None:
    assert keeps_change_times(str(ground)) is True
    assert list(ground.iterdir()) == []


@pytest.mark.parametrize("change", ["_write_mapped", "_link", "_rename"])
def test_the_probe_does_not_believe_a_file_system_that_hides_a_change(
    ground: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(f"arena.changetimes.{change}", lambda target: None)
    assert keeps_change_times(str(ground)) is False
    assert list(ground.iterdir()) == []


def test_mapped_writes_are_undone_where_change_times_do_not_tell(
    memory_folder: Path, agent: Agent, snapshot_of: Pack
) -> None:
    fill(memory_folder)
    ready = Workspace(str(memory_folder), snapshot_of(memory_folder), agent)
    ready.restore()
    ready.settle()
    wanted = (memory_folder / "src" / "a.py").read_bytes()
    with (memory_folder / "src" / "a.py").open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
        mapping[0:1] = b"X"
    ready.restore()
    assert (memory_folder / "src" / "a.py").read_bytes() == wanted
