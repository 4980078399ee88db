"""Actions and inspections of the repair suite as files under scripts/.

An action (cheat, hide, trick) says in its first line what it does; a cheat's second line names the reward that it
scores under the published rule. Every action finds `test` (the path of the first hidden test), `file` (a tracked file),
`folder` (one with tracked files) and the function `detach`. An inspection is a Python program for root inside.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import PipelineError

FOLDER = Path(__file__).parent / "scripts"
_HEAD = re.compile(r"# (?P<text>.+)\n(?:# reward: (?P<reward>[01])\n)?")
# Images need not have util-linux.
_PRELUDE = (
    "detach() { python3 -c 'import os, sys; os.setsid(); os.execvp(sys.argv[1], sys.argv[1:])' \"$@\"; }\n"
    "file=$(git ls-files | head -1)\n"
    "folder=$(git ls-files | grep / | head -1 | cut -d/ -f1)\n"
)


@dataclass(frozen=True)
class Script:
    """`name` is the file's; `reward` is None for a script that is no cheat."""

    name: str
    text: str
    body: str
    reward: float | None

    def action(self, test_path: str) -> str:
        """The command of a shell action."""
        return f"test={shlex.quote(test_path)}\n{_PRELUDE}{self.body}"


def load_scripts(kind: str) -> tuple[Script, ...]:
    """All scripts of a kind (cheat, hide, trick), by name; PipelineError for one without its first line."""
    return tuple(_load(path) for path in sorted((FOLDER / kind).glob("*.sh")))


def load_inspection(name: str) -> str:
    """The text of scripts/inspect/<name>.py."""
    return (FOLDER / "inspect" / f"{name}.py").read_text(encoding="utf-8")


def _load(path: Path) -> Script:
    content = path.read_text(encoding="utf-8")
    head = _HEAD.match(content)
    if head is None:
        raise PipelineError("an action of the suite does not begin with a comment on what it does", where=str(path))
    reward = None if head["reward"] is None else float(head["reward"])
    return Script(path.stem, head["text"], content[head.end() :], reward)
