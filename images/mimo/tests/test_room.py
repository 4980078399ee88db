"""Memory and disk that run short while a command runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from arena.agent import Agent
from arena.room import FLOOR_BYTES, Room, free_memory
from arena.shell import ShellRunner

MIB = 1 << 20
V2 = ("memory.max", "memory.current", "memory.stat")
V1 = ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat")


def write_group(folder: Path, names: tuple[str, str, str], limit: str, use: int, dropped: int = 0) -> Path:
    statistics = f"anon 1\nactive_file {dropped // 2}\ninactive_file {dropped - dropped // 2}\nrefault 7"
    for name, text in zip(names, (limit, str(use), statistics), strict=True):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"{text}\n")
    return folder


@pytest.mark.parametrize("names", [V1, V2])
def test_files_that_can_be_dropped_count_as_free(tmp_path: Path, names: tuple[str, str, str]) -> None:
    assert free_memory(write_group(tmp_path, names, str(1024 * MIB), 1000 * MIB, 300 * MIB)) == 324 * MIB


@pytest.mark.parametrize(("names", "limit"), [(V2, "max"), (V1, "9223372036854771712")])
def test_without_a_limit_memory_never_runs_short(tmp_path: Path, names: tuple[str, str, str], limit: str) -> None:
    assert Room(str(tmp_path), write_group(tmp_path, names, limit, 1 << 50)).shortage() == ""
    assert Room(str(tmp_path), tmp_path / "none").shortage() == ""


@pytest.mark.parametrize(("limit", "floor"), [(8192 * MIB, FLOOR_BYTES), (256 * MIB, 128 * MIB)])
def test_memory_runs_short_at_the_floor(tmp_path: Path, limit: int, floor: int) -> None:
    room = Room(str(tmp_path), write_group(tmp_path, V2, str(limit), 0))
    assert room.shortage() == ""
    write_group(tmp_path, V2, str(limit), limit - floor)
    assert room.shortage() == ""
    write_group(tmp_path, V2, str(limit), limit - floor + 1)
    assert room.shortage() == "memory"


@pytest.mark.parametrize("used", ["f_bavail", "f_favail"])
def test_a_disk_runs_short_of_bytes_and_of_inodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, used: str) -> None:
    state = {name: getattr(os.statvfs(tmp_path), name) for name in ("f_bavail", "f_frsize", "f_favail", "f_files")}
    monkeypatch.setattr(os, "statvfs", lambda path: type("State", (), state))
    room = Room(str(tmp_path), tmp_path)
    assert room.shortage() == ""
    state[used] = 0
    assert room.shortage() == "disk"


def test_a_command_that_takes_the_memory_is_ended(
    workspace: Path, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_group(workspace, V2, str(1024 * MIB), 0)
    monkeypatch.setattr("arena.shell.Room", lambda path: Room(path, workspace))
    runner = ShellRunner(str(workspace), agent, timeout_s=10)
    result = runner.run(f"sleep 0.5; echo {1000 * MIB} > new; mv -f new {V2[1]}; sleep 30")
    runner.close()
    assert result.exit_code == 137
    assert result.output == "\n[the command was killed because the memory is nearly full]\n"
