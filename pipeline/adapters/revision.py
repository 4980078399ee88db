"""Which commit of this repository an image is built from."""

from __future__ import annotations

import subprocess
from pathlib import Path

from pipeline.errors import ConfigError

# what goes into an image or decides what does; a changed README does not make a build dirty
SOURCES = ("images", "pipeline", "policies", "release.yaml", "requirements.lock")


def read_revision(root: Path) -> str:
    """The commit id of HEAD, followed by `-dirty` when files that matter differ from it."""
    commit = _git(root, "rev-parse", "--verify", "HEAD")
    changed = _git(root, "status", "--porcelain", "--", *SOURCES)
    return f"{commit}-dirty" if changed else commit


def _git(root: Path, *arguments: str) -> str:
    # our own repository: its configuration is this machine's user's, unlike that of a repository in an image
    command = ["git", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError("git does not run", where=str(root), remedy="install git") from error
    if done.returncode != 0:
        raise ConfigError(
            f"git {arguments[0]} failed: {done.stderr.strip()[:200]}",
            where=str(root),
            remedy="release from a git clone: images carry the commit that they are built from",
        )
    return done.stdout.strip()
