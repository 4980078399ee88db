"""Actions and observations, exactly as the schema that consumers were given.

The two classes have no docstring: pydantic would publish it in `/schema`, which must stay byte for byte what it was.
"""

from __future__ import annotations

from typing import Literal

from openenv.core.env_server.types import Action, Observation
from pydantic import Field

MAX_COMMAND_CHARS = 16_000
MAX_OUTPUT_CHARS = 16_000


class ShellAction(Action):
    operation: Literal["shell", "finish"] = Field(description="Run a bash command or finish and grade the repository.")
    command: str = Field(
        default="",
        max_length=MAX_COMMAND_CHARS,
        description="Bash command; each call starts in the task repository.",
    )


class ShellObservation(Observation):
    task_id: str
    output: str = Field(max_length=MAX_OUTPUT_CHARS)
    exit_code: int | None = None
