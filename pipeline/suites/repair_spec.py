"""What the repair suite needs to know of a task, and how its checks and scenarios are written down."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from pipeline.suites.scenario import Bench, Observation, Scenario, Statement
from pipeline.suites.scriptfile import load_inspection
from pipeline.suites.workflow_player import Player

RESET_S, GRADING_S = 120.0, 150.0


@dataclass(frozen=True)
class RepairSpec:
    """`record` is record.json byte for byte; `reference_repair` a git patch; `schema` as for the workflow suite.

    `schema` is the content of policies/openenv-schema.json: `action` and `observation` as consumers were given them.
    """

    task_id: str
    cwd: str
    record: bytes
    base_commit: str
    guard: Literal["none", "planted-hooks"]
    reference_repair: str
    schema: JsonValue

    @property
    def statement(self) -> str:
        """The record's problem statement."""
        return str(json.loads(self.record)["problem_statement"])

    @property
    def test_patch(self) -> str:
        """The record's hidden tests."""
        return str(json.loads(self.record)["test_patch"])

    @property
    def test_paths(self) -> tuple[str, ...]:
        """New names of the files that the hidden tests bring."""
        lines = self.test_patch.splitlines()
        return tuple(sorted({line.removeprefix("+++ b/") for line in lines if line.startswith("+++ b/")}))

    @property
    def repair_command(self) -> str:
        """A shell action that applies the reference repair."""
        return f"git apply - <<'END_OF_REFERENCE'\n{self.reference_repair}END_OF_REFERENCE"


Facts = tuple[tuple[str, str, JsonValue], ...]
Steps = Callable[[RepairSpec, Bench, Player], Iterator[Observation]]


def make_scenario(spec: RepairSpec, area: str, facts: Facts, steps: Steps, *, alone: bool = False) -> Scenario:
    """A scenario `repair.<area>`: facts are (name, statement, expected); steps yield (name, observed)."""
    statements = tuple(Statement(f"repair.{area}.{name}", text, expected) for name, text, expected in facts)

    def run(bench: Bench) -> Iterator[Observation]:
        player = Player(bench, RESET_S, GRADING_S)
        try:
            for name, observed in steps(spec, bench, player):
                yield f"repair.{area}.{name}", observed
        finally:
            player.close()

    return Scenario(f"repair.{area}", statements, run, needs_own_container=alone)


def inspect(bench: Bench, program: str, *arguments: str, timeout_s: float = 60) -> JsonValue:
    """Run scripts/inspect/<program>.py as root in the container and parse the JSON that it prints; an error raises."""
    text = load_inspection(program)
    done = bench.container.exec(["/usr/bin/python3", "-I", "-c", text, *arguments], timeout_s=timeout_s)
    if done.exit_code != 0:
        raise LookupError(f"the inspection {program} failed: {done.output[-500:].decode('utf-8', 'replace')}")
    value: JsonValue = json.loads(done.output)
    return value
