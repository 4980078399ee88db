"""The curriculum: TASK_IDS (families), make_task(task_id, seed, difficulty), grade(task, answer)."""

import json
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module

from workflow.grading import grade_components
from workflow.stream import Stream

TASK_IDS = (
    "software_change",
    "industrial_schedule",
    "science_calibration",
    "office_reconciliation",
    "finance_ledger",
    "math_route",
    "security_triage",
    "media_timeline",
)
ENDING = """
Write one JSON object with exactly these keys to answer.json in this folder (/workspace/repo): a regular file, UTF-8,
at most 16,384 bytes. Then finish. Text is compared and sorted by character code. The order of lists counts, of keys
not. Each key is graded exactly and earns its share; a key that is not listed above makes the whole answer worth 0.
You have 16 actions; after the sixteenth the answer is graded as it is.
"""


@dataclass(frozen=True)
class Task:
    """`files` are name to text, `prompt` the instructions; `expected` never leaves this process."""

    files: dict
    prompt: str
    expected: dict = field(repr=False)


@cache
def make_task(task_id: str, seed: int, difficulty: int) -> Task:
    """The same task for the same arguments, always. KeyError for another family."""
    if task_id not in TASK_IDS:
        raise KeyError(task_id)
    family = import_module(f"workflow.families.{task_id}")
    files, expected = family.make(Stream(f"{task_id}/{difficulty}/{seed}"), difficulty)
    return Task({name: _text(content) for name, content in files.items()}, family.PROMPT + ENDING, expected)


def grade(task: Task, answer: dict) -> float:
    """0.0 to 1.0 for a parsed JSON answer."""
    return grade_components(task.expected, answer)


def _text(content) -> str:
    """JSON with one row or key a line."""
    if isinstance(content, list):
        return "[\n" + ",\n".join(map(json.dumps, content)) + "\n]\n"
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in content.items()) + "\n}\n"
