"""Runs a curriculum module that comes on standard input and writes what it makes of every case as JSON.

A program of its own, started by `adapters.vendored` without site packages: it imports the standard library alone. Its
argument is `forward` or `backward`, the order in which the cases are made; the output is sorted the same either way.
"""

import json
import resource
import sys
import types
from typing import Any

LIMITS = (
    (resource.RLIMIT_CPU, 60),
    (resource.RLIMIT_AS, 1 << 30),
    (resource.RLIMIT_FSIZE, 16 << 20),
    (resource.RLIMIT_NOFILE, 32),
    (resource.RLIMIT_CORE, 0),
)
DIFFICULTIES, SEEDS = (1, 2), (101, 307)


def part(task: Any, name: str) -> Any:
    """A task is an object or a mapping."""
    return task[name] if isinstance(task, dict) else getattr(task, name)


def text(content: object) -> str:
    """File content as the image would write it."""
    if isinstance(content, bytes):
        return content.decode()
    return content if isinstance(content, str) else json.dumps(content)


def describe(module: types.ModuleType, family: str, seed: int, difficulty: int) -> dict[str, object]:
    """One case: its files, its answer (from the module's own reference function where it has one), and three scores."""
    task = module.make_task(family, seed, difficulty)
    expected = part(task, "expected")
    reference = getattr(module, "reference_answer", None)
    answer = reference(task) if reference is not None else expected
    return {
        "id": f"{family}-d{difficulty}-s{seed}",
        "family": family,
        "files": {name: text(content) for name, content in part(task, "files").items()},
        "prompt": part(task, "prompt"),
        "answer": answer,
        "scores": [
            float(module.grade(task, expected)),
            float(module.grade(task, answer)),
            float(module.grade(task, {})),
        ],
    }


def main() -> None:
    """Limits first, then the module."""
    for kind, value in LIMITS:
        resource.setrlimit(kind, (value, value))
    # The result goes to the real standard output; what the module prints goes nowhere.
    result, sys.stdout = sys.stdout, sys.stderr
    module = types.ModuleType("vendored")
    sys.modules["vendored"] = module
    exec(compile(sys.stdin.buffer.read(), "vendored", "exec"), module.__dict__)  # noqa: S102 - its purpose, inside all limits
    cases = [(family, seed, difficulty) for family in module.TASK_IDS for difficulty in DIFFICULTIES for seed in SEEDS]
    if sys.argv[1] == "backward":
        cases.reverse()
    made = sorted((describe(module, *case) for case in cases), key=lambda case: str(case["id"]))
    result.write(json.dumps(made, sort_keys=True))


if __name__ == "__main__":
    main()
