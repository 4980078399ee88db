"""The task as it was given: the record, byte for byte, and what the pipeline derived from it for the server."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from arena.failures import InfrastructureError

Guard = Literal["none", "planted-hooks"]


@dataclass(frozen=True)
class TaskRecord:
    """Fields of record.json that an episode needs, and of task.json: id, base commit and guard."""

    task_id: str
    base_commit: str
    guard: Guard
    cwd: str
    problem_statement: str
    test_patch: str
    test_command: str
    verifier_timeout_s: float


def load_record(record_path: Path, task_path: Path) -> TaskRecord:
    """Read both files; InfrastructureError names what is missing."""
    record, task = _load(record_path), _load(task_path)
    try:
        if record["dataset_type"] != "opensource-code":
            raise InfrastructureError(f"{record_path}: unknown dataset_type {record['dataset_type']!r}")
        if task["guard"] not in ("none", "planted-hooks"):
            raise InfrastructureError(f"{task_path}: unknown guard {task['guard']!r}")
        return TaskRecord(
            task_id=task["id"],
            base_commit=task["base_commit"],
            guard=task["guard"],
            cwd=record["cwd"],
            problem_statement=record["problem_statement"],
            test_patch=record["test_patch"],
            test_command=record["test_command"],
            verifier_timeout_s=float(record["verifier_timeout_sec"]),
        )
    except KeyError as error:
        raise InfrastructureError(f"{record_path} and {task_path} lack {error}") from error


def _load(path: Path) -> dict[str, Any]:
    value = json.loads(path.read_bytes())
    if not isinstance(value, dict):
        raise InfrastructureError(f"{path} is no JSON object")
    return value
