"""The two rules that others use, run with git on what a container of the image would show."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

from tests.fakes.leaks import BASE_TIME_S, GIT_ENVIRONMENT, REPO, Image, World


def unpack(image: Image, folder: Path) -> Path:
    """The merged root of an image that a test made, files only, with whiteouts applied; the repository's path."""
    for blob in image.blobs:
        with tarfile.open(fileobj=io.BytesIO(blob)) as tar:
            members = tar.getmembers()
            for member in members:
                _hide(folder, member.name)
            keep = [member for member in members if "/.wh." not in f"/{member.name}"]
            for member in keep:
                member.mode |= 0o700
            tar.extractall(folder, keep, filter="tar")
    return folder / REPO


def _hide(folder: Path, name: str) -> None:
    parent, _, last = name.rpartition("/")
    if last == ".wh..wh..opq":
        shutil.rmtree(folder / parent, ignore_errors=True)
    elif last.startswith(".wh."):
        shutil.rmtree(folder / parent / last[4:], ignore_errors=True)


def finds_by_refs(repository: Path, world: World) -> bool:
    """`git rev-list --all --not <base>`: commits that a ref reaches and the base does not."""
    return bool(_lines(repository, "rev-list", "--all", "--not", world.base))


def finds_by_time(repository: Path) -> bool:
    """No commit that is later than the base, over all refs and reflogs."""
    return bool(_lines(repository, "rev-list", "--all", "--reflog", f"--since={BASE_TIME_S + 1}"))


def _lines(repository: Path, *arguments: str) -> list[str]:
    environment = GIT_ENVIRONMENT | {"GIT_CEILING_DIRECTORIES": str(repository.parent)}
    done = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", os.fspath(repository), *arguments],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout.split()
