"""Sdists into a repository: the same bytes each time, sound for git, the future in it as public images have it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pipeline.derive.layer import Entry
from pipeline.embedded.archives import ArchivedFile
from pipeline.embedded.githistory import History, Version, make_history
from pipeline.errors import ConfigError
from pipeline.model.release import RemovedFunction, RepositoryRecipe

EPOCH_S = 1_760_227_200
REMOVED = RemovedFunction(file="pkg/m.py", function="f")
RECIPE = RepositoryRecipe(project="Pkg", lock="sdists.lock", base_version="1.1", removed=(REMOVED,))
SOURCE = b"a = 1\n\n\ndef f():\n    return %d\n\n\ndef g():\n    return 2\n"
# Written by an earlier run, and the same on every machine, whatever git, zlib or Python it has.
GOLDEN_BASE = "874d42ca0a7949384afdb3c8a0bb29048b00219b"
GOLDEN_LAST = "fff9bdb231d34dafaae3f612e4831e78a96c59c4"


def version_of(number: str, *, future: bytes = b"") -> Version:
    files = {
        "pkg/m.py": ArchivedFile(SOURCE % int(number[-1]) + future, executable=False),
        "pkg/__init__.py": ArchivedFile(b"", executable=False),
        "pkg.txt": ArchivedFile(b"sorts before the folder's files\n", executable=False),
        "run.sh": ArchivedFile(b"#!/bin/sh\n", executable=True),
        "ünï.txt": ArchivedFile(number.encode(), executable=False),
    }
    return Version(number, f"Pkg-{number}.tar.gz", files)


VERSIONS = (version_of("1.0"), version_of("1.1"), version_of("1.2", future=b"\n\nlater = 3\n"), version_of("1.3"))


@pytest.fixture(scope="module")
def history() -> History:
    return make_history(RECIPE, VERSIONS, "task.yaml", EPOCH_S)


def write(entries: tuple[Entry, ...], folder: Path) -> Path:
    for entry in entries:
        path = folder / entry.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if entry.kind == "dir":
            path.mkdir(exist_ok=True)
        else:
            path.write_bytes(entry.data)
            path.chmod(entry.mode)
    return folder


@pytest.fixture(scope="module")
def repository(history: History, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(history.entries, tmp_path_factory.mktemp("repository"))


def git(repository: Path, *arguments: str) -> str:
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent", "LC_ALL": "C"}
    command = ["git", "-c", "core.quotePath=false", *arguments]
    return subprocess.run(command, cwd=repository, env=environment, check=True, capture_output=True, text=True).stdout


def test_commit_ids_are_the_same_on_every_machine(history: History) -> None:
    assert (history.base_commit, history.last_commit) == (GOLDEN_BASE, GOLDEN_LAST)


def test_twice_is_the_same_bytes(history: History) -> None:
    assert make_history(RECIPE, VERSIONS, "elsewhere", EPOCH_S) == history


def test_git_finds_nothing_wrong(repository: Path) -> None:
    git(repository, "fsck", "--strict", "--full", "--no-dangling")
    git(repository, "verify-pack", *(str(path) for path in (repository / ".git/objects/pack").glob("*.idx")))


def test_head_is_the_base_on_main_and_everything_is_clean(repository: Path, history: History) -> None:
    assert git(repository, "rev-parse", "HEAD").strip() == history.base_commit
    assert git(repository, "symbolic-ref", "HEAD").strip() == "refs/heads/main"
    assert git(repository, "status", "--porcelain", "--ignored") == ""
    assert git(repository, "diff-index", "--cached", "HEAD") == ""


def test_one_commit_a_version_with_a_fixed_identity(repository: Path) -> None:
    log = git(repository, "log", "--format=%s|%an <%ae>|%cI", "upstream").splitlines()
    assert [line.split("|")[0] for line in log] == ["Pkg 1.3", "Pkg 1.2", "Pkg 1.1", "Pkg 1.0"]
    assert {line.split("|")[1] for line in log} == {"Pkg importer <noreply@example.invalid>"}
    assert log[-1].endswith("2017-07-14T02:40:00+00:00")


def test_the_function_is_absent_up_to_the_base_and_whole_later(repository: Path) -> None:
    for tag in ("v1.0", "v1.1"):
        assert git(repository, "show", f"{tag}:pkg/m.py") == "a = 1\n\n\ndef g():\n    return 2\n"
    for tag, number in (("v1.2", 2), ("v1.3", 3)):
        assert f"def f():\n    return {number}" in git(repository, "show", f"{tag}:pkg/m.py")
    assert (repository / "pkg/m.py").read_text() == "a = 1\n\n\ndef g():\n    return 2\n"


def test_modes_survive(repository: Path) -> None:
    assert git(repository, "ls-tree", "HEAD", "run.sh").startswith("100755 blob")
    assert (repository / "run.sh").stat().st_mode & 0o777 == 0o755


def test_the_future_is_there_as_public_images_have_it(repository: Path, history: History) -> None:
    refs = git(repository, "for-each-ref", "--format=%(refname)", "--contains", history.last_commit).split()
    assert refs == ["refs/heads/upstream", "refs/remotes/origin/main", "refs/tags/v1.3"]
    assert history.last_commit in (repository / ".git/logs/HEAD").read_text()
    assert (repository / ".git/ORIG_HEAD").read_text().strip() == history.last_commit
    assert (repository / ".git/FETCH_HEAD").read_text().startswith(history.last_commit)
    assert git(repository, "reflog", "show", "--format=%H", "HEAD").split() == [
        history.base_commit,
        history.last_commit,
    ]


def test_unreachable_objects_hold_the_removed_function(repository: Path) -> None:
    lines = git(repository, "fsck", "--unreachable", "--no-reflogs").splitlines()
    kinds = {line.split()[1]: line.split()[2] for line in lines}
    assert set(kinds) == {"commit", "tree", "blob"}
    assert "def f():" in git(repository, "show", f"{kinds['commit']}:pkg/m.py")
    assert (repository / ".git/objects" / kinds["commit"][:2] / kinds["commit"][2:]).is_file()


def test_everything_is_the_agents(history: History) -> None:
    assert {(entry.uid, entry.gid) for entry in history.entries} == {(2000, 2000)}
    assert all(entry.mode & 0o022 == 0 for entry in history.entries)


@pytest.mark.parametrize("base", ["1.3", "0.9", ""])
def test_a_base_that_is_absent_or_last_is_refused(base: str) -> None:
    recipe = RECIPE.model_copy(update={"base_version": base})
    with pytest.raises(ConfigError, match="base_version") as caught:
        make_history(recipe, VERSIONS, "task.yaml", EPOCH_S)
    assert caught.value.where == "task.yaml"


def test_a_removal_that_finds_nothing_is_refused() -> None:
    missing = RemovedFunction(file="pkg/m.py", function="absent")
    with pytest.raises(ConfigError, match=r"absent is in pkg/m\.py of no version"):
        make_history(RECIPE.model_copy(update={"removed": (REMOVED, missing)}), VERSIONS, "task.yaml", EPOCH_S)


def test_a_base_that_loses_nothing_is_refused() -> None:
    whole = version_of("1.1")
    without = Version("1.1", whole.file_name, {k: v for k, v in whole.files.items() if k != "pkg/m.py"})
    with pytest.raises(ConfigError, match="nothing is removed"):
        make_history(RECIPE, (VERSIONS[0], without, VERSIONS[2]), "task.yaml", EPOCH_S)
