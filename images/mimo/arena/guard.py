"""The guard `planted-hooks`: before grading, nothing that the agent planted can steer the test run.

The published rule grades the workspace as the agent left it, so a planted `conftest.py` or a shadowed module decides
the exit code. This guard puts back or removes everything that a test runner or git reads by itself, and leaves the
rest, the repair, as it is. It is a stricter rule than the published one, and an image says which of the two it uses.
"""

from __future__ import annotations

from arena.snapshot import Snapshot
from arena.tree import Workspace

GUARDED_VARIABLES = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONNOUSERSITE": "1",
}


def remove_planted_hooks(workspace: Workspace, snapshot: Snapshot) -> None:
    """Put back what git and test runners read by themselves."""
    raise NotImplementedError
