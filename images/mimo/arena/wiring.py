"""How the parts of a repair image are put together."""

from __future__ import annotations

from pathlib import Path

from arena.agent import Agent
from arena.cleanup import Cleanup
from arena.episode import Arena
from arena.processes import Reaper
from arena.record import load_record
from arena.repair import RepairTask
from arena.shell import ShellRunner
from arena.snapshot import open_snapshot
from arena.tree import Workspace


def make_arena_parts(cwd: str, agent: Agent | None = None, root: str = "/") -> tuple[ShellRunner, Cleanup]:
    """The runner and the cleanup that every image uses, for a workspace at `cwd`."""
    agent, reaper = agent or Agent(), Reaper()
    return ShellRunner(cwd, agent, reaper), Cleanup(agent, cwd, reaper, root)


def repair_arena(folder: Path) -> tuple[Arena, str]:
    """Read record.json, task.json and snapshot.tar of `folder`; returns the arena and the task's id."""
    record = load_record(folder / "record.json", folder / "task.json")
    runner, cleanup = make_arena_parts(record.cwd)
    snapshot = open_snapshot(str(folder / "snapshot.tar"))
    workspace = Workspace(record.cwd, snapshot, runner.agent)
    task = RepairTask(record, workspace, runner, cleanup)
    return Arena(task, runner, cleanup), record.task_id
