"""The guard `planted-hooks`: before grading, nothing that the agent planted can steer the test run.

The published rule grades the workspace as the agent left it, so a planted `conftest.py` or a shadowed module decides
the exit code. This guard puts back or removes everything that a test runner, Python or git reads by itself, and leaves
the rest, the repair, as it is. It is a stricter rule than the published one; an image says which of the two it uses.
What a repair's own code may do to its test run is the business of the canary in `grade`.
"""

from __future__ import annotations

import fnmatch
import os
import stat
import sys
from collections.abc import Iterable

from arena.remove import names_in, remove
from arena.snapshot import ROOT
from arena.tree import Workspace

GUARDED_VARIABLES = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONNOUSERSITE": "1",
}
# Read by a runner, an interpreter or git without anybody asking for it.
HOOKS = (
    "conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg", "pyproject.toml",
    "sitecustomize.py", "usercustomize.py", "*.pth", "__pycache__", "*.pyc", "*.egg-info", "*.dist-info", "*.egg-link",
    "*_test.go", ".gitattributes", ".coveragerc",
)  # fmt: skip
_TEST_FOLDERS = frozenset({"test", "tests", "testing"})
_INSTALLED = ("/usr/lib/python3/dist-packages", "/usr/local/lib/python3.11/dist-packages")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DEPTH = 64


def remove_planted_hooks(workspace: Workspace, touched: Iterable[str]) -> None:
    """Put `.git`, the test folders of `touched` and every hook back to the snapshot, or remove what it lacks."""
    names = workspace.snapshot.names
    workspace.restore_below(".git")
    for folder in sorted({folder for path in touched for folder in [_test_folder(path)] if folder}):
        workspace.restore_below(folder)
    _Sweep(workspace, frozenset(sys.stdlib_module_names) | _installed_modules()).directory(ROOT, names)


class _Sweep:
    """A walk over what is there, as deep as a repository reasonably is; what lies deeper was planted and goes."""

    def __init__(self, workspace: Workspace, shadowed: frozenset[str]) -> None:
        self._workspace, self._shadowed = workspace, shadowed

    def directory(self, path: str, names: dict[str, frozenset[str]]) -> None:
        """Judge every entry below `path`."""
        directory_fd = self._workspace.open_directory(path)
        try:
            for name in names_in(directory_fd):
                self._entry(directory_fd, path, name, names)
        finally:
            os.close(directory_fd)

    def _entry(self, directory_fd: int, parent: str, name: str, names: dict[str, frozenset[str]]) -> None:
        path = f"{parent}/{name}" if parent else name
        is_known = name in names.get(parent, frozenset())
        mode = os.stat(name, dir_fd=directory_fd, follow_symlinks=False).st_mode
        if is_hook(name) or (not is_known and self._shadows(directory_fd, parent, name, mode, names)):
            if is_known:
                self._workspace.restore_below(path)
            else:
                remove(name, directory_fd)
        elif stat.S_ISDIR(mode) and path != ".git":
            if path.count("/") >= _DEPTH:
                remove(name, directory_fd)
            else:
                self.directory(path, names)

    def _shadows(self, directory_fd: int, parent: str, name: str, mode: int, names: dict[str, frozenset[str]]) -> bool:
        """Whether it is importable under the name of an installed module, from a folder that may be on the path."""
        if "__init__.py" in names.get(parent, frozenset()) or name.partition(".")[0] not in self._shadowed:
            return False
        if not stat.S_ISDIR(mode):
            return stat.S_ISLNK(mode) or name.endswith((".py", ".pyc", ".so"))
        child_fd = os.open(name, _DIRECTORY, dir_fd=directory_fd)
        try:
            return any(child.startswith("__init__.") for child in names_in(child_fd))
        finally:
            os.close(child_fd)


def is_hook(name: str) -> bool:
    """Whether something reads a file or folder of this name by itself."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in HOOKS)


def _test_folder(path: str) -> str:
    """The outermost folder of tests that a path lies in; empty when there is none."""
    parts = path.split("/")[:-1]
    for index, part in enumerate(parts):
        if part in _TEST_FOLDERS:
            return "/".join(parts[: index + 1])
    return ""


def _installed_modules() -> frozenset[str]:
    found = {"pytest", "_pytest", "pluggy"}
    for folder in _INSTALLED:
        if os.path.isdir(folder):  # noqa: PTH112 - constant
            found.update(name.partition(".")[0] for name in os.listdir(folder))  # noqa: PTH208 - constant
    return frozenset(found)
