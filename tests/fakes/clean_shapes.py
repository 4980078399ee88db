"""Repositories of many shapes that hold nothing of the future: a finding in any of them is a false alarm."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipeline.scan.rules import Rules
from tests.fakes.leaks import REPO, Item, git, make_tar, source_text, tree_items


@dataclass(frozen=True)
class Shape:
    """Entries of one layer, and the rules that it is judged by."""

    items: list[Item]
    rules: Rules


SHAPES: dict[str, Callable[[Path], Shape]] = {}


def shape(function: Callable[[Path], Shape]) -> Callable[[Path], Shape]:
    """Register a shape under its function's name."""
    SHAPES[function.__name__.replace("_", " ")] = function
    return function


def _repository(folder: Path, *options: str, commits: int = 3) -> Path:
    path = folder / "shape"
    path.mkdir()
    git(path, "init", "-q", "-b", "main", *options)
    for number in range(commits):
        (path / "core.py").write_bytes(source_text("core", number))
        git(path, "add", ".")
        git(path, "commit", "-qm", f"version {number}", at=number * 100)
    return path


def _shape(path: Path, revision: str = "HEAD", **more: object) -> Shape:
    base = git(path, "rev-parse", f"{revision}^{{commit}}").decode().strip()
    return Shape(tree_items(path, REPO, 2000), Rules(base_commits=(base,), **more))  # type: ignore[arg-type]


@shape
def loose_objects(folder: Path) -> Shape:
    return _shape(_repository(folder))


@shape
def detached_head(folder: Path) -> Shape:
    path = _repository(folder)
    git(path, "checkout", "-q", "--detach")
    return _shape(path)


@shape
def packed_with_all_indexes(folder: Path) -> Shape:
    path = _repository(folder, commits=12)
    git(path, "repack", "-q", "-a", "-d", "-f")
    git(path, "multi-pack-index", "write")
    git(path, "commit-graph", "write", "--reachable")
    return _shape(path)


@shape
def several_packs(folder: Path) -> Shape:
    path = _repository(folder)
    git(path, "repack", "-q", "-d")
    (path / "more.py").write_bytes(source_text("more", 1))
    git(path, "add", ".")
    git(path, "commit", "-qm", "more")
    git(path, "repack", "-q", "-d")
    return _shape(path)


@shape
def shallow_base(folder: Path) -> Shape:
    git(folder, "clone", "-q", "--depth", "1", f"file://{_repository(folder)}", "shallow")
    return _shape(folder / "shallow")


@shape
def submodule_at_an_allowed_commit(folder: Path) -> Shape:
    module = _repository(folder)
    outer = folder / "outer"
    outer.mkdir()
    git(outer, "init", "-q", "-b", "main")
    git(outer, "submodule", "add", "-q", str(module), "module")
    git(outer, "commit", "-qm", "with a module")
    return _shape(outer)


@shape
def sha256_objects(folder: Path) -> Shape:
    path = _repository(folder, "--object-format=sha256", commits=6)
    git(path, "repack", "-q", "-a", "-d")
    (path / "loose.py").write_bytes(source_text("loose", 1))
    git(path, "add", ".")
    git(path, "commit", "-qm", "loose")
    return _shape(path)


@shape
def empty_repository(folder: Path) -> Shape:
    path = _repository(folder, commits=0)
    return Shape(tree_items(path, REPO, 2000), Rules())


@shape
def names_that_are_hard(folder: Path) -> Shape:
    path = _repository(folder)
    for name in (
        b"line\nfeed",
        b"\xff\xfe latin",
        b"tab\t",
        b'quo"te',
        b"-dash",
        b"back\\slash",
        "\u00fcmlaut".encode(),
    ):
        Path(os.fsdecode(os.fsencode(path) + b"/" + name)).write_bytes(name)
    git(path, "add", ".")
    git(path, "commit", "-qm", "names")
    items = tree_items(path / ".git", f"{REPO}/.git", 2000)
    return Shape([*items, Item(b"workspace/repo/\xff\xfe latin", b"x")], _shape(path).rules)


@shape
def case_twins(folder: Path) -> Shape:
    path = _repository(folder)
    (path / "Name").write_text("upper")
    (path / "name").write_text("lower")
    git(path, "add", ".")
    git(path, "commit", "-qm", "twins")
    return _shape(path)


@shape
def ten_thousand_refs(folder: Path) -> Shape:
    path = _repository(folder)
    base = git(path, "rev-parse", "HEAD").decode().strip()
    lines = "".join(f"create refs/tags/t{number} {base}\n" for number in range(10_000))
    git(path, "update-ref", "--stdin", stdin=lines.encode())
    git(path, "pack-refs", "--all")
    return _shape(path)


@shape
def blob_of_200_megabytes(folder: Path) -> Shape:
    path = _repository(folder)
    with (path / "large.bin").open("wb") as file:
        for number in range(200):
            file.write(number.to_bytes(4, "big") * (1 << 18))
    git(path, "add", ".")
    git(path, "commit", "-qm", "large")
    (path / "large.bin").unlink()
    return _shape(path)


@shape
def merges_and_several_roots(folder: Path) -> Shape:
    path = _repository(folder)
    git(path, "checkout", "-q", "--orphan", "other")
    git(path, "commit", "-qm", "second root")
    git(path, "checkout", "-q", "main")
    git(path, "merge", "-q", "--allow-unrelated-histories", "-m", "merge", "other")
    return _shape(path)


@shape
def annotated_tags_of_ancestors(folder: Path) -> Shape:
    path = _repository(folder)
    git(path, "tag", "-a", "-m", "one", "v1", "HEAD~1")
    git(path, "tag", "-a", "-m", "tag of a tag", "v1-again", "v1")
    return _shape(path)


@shape
def links_and_modes(folder: Path) -> Shape:
    path = _repository(folder)
    (path / "run").write_text("#!/bin/sh\n")
    (path / "run").chmod(0o755)
    (path / "link").symlink_to("core.py")
    git(path, "add", ".")
    git(path, "commit", "-qm", "modes")
    return _shape(path)


@shape
def second_worktree_at_an_ancestor(folder: Path) -> Shape:
    path = _repository(folder)
    git(path, "worktree", "add", "-q", "--detach", str(folder / "tree"), "HEAD~1")
    return _shape(path)


@shape
def vendored_repository_by_its_own_base(folder: Path) -> Shape:
    first = _shape(_repository(folder))
    other = folder / "vendored"
    other.mkdir()
    second = _shape(_repository(other, commits=5))
    return Shape([*first.items, *tree_items(other / "shape", "opt/vendored")], Rules(
        base_commits=first.rules.base_commits + second.rules.base_commits
    ))  # fmt: skip


@shape
def vendored_repository_allowed_by_rule(folder: Path) -> Shape:
    first = _shape(_repository(folder), unrelated="allow")
    other = folder / "vendored"
    other.mkdir()
    git(other, "init", "-q", "-b", "main")
    (other / "thing.c").write_bytes(b"int thing(void) { return 1; }\n")
    git(other, "add", ".")
    git(other, "commit", "-qm", "thing")
    return Shape([*first.items, *tree_items(other, "opt/vendored")], first.rules)


@shape
def head_is_the_base_when_none_is_declared(folder: Path) -> Shape:
    return Shape(_shape(_repository(folder)).items, Rules())


@shape
def bare_repository(folder: Path) -> Shape:
    git(folder, "clone", "-q", "--bare", str(_repository(folder)), "bare.git")
    return Shape(tree_items(folder / "bare.git", "srv/bare.git"), _shape(folder / "bare.git").rules)


@shape
def bundle_of_the_base(folder: Path) -> Shape:
    path = _repository(folder)
    git(path, "bundle", "create", "-q", str(folder / "b"), "HEAD")
    made = _shape(path)
    return Shape([*made.items, Item("opt/base.bundle", (folder / "b").read_bytes())], made.rules)


@shape
def index_of_version_4(folder: Path) -> Shape:
    path = _repository(folder)
    git(path, "update-index", "--index-version", "4")
    return _shape(path)


@shape
def reflogs_of_ancestors(folder: Path) -> Shape:
    path = _repository(folder)
    git(path, "checkout", "-q", "HEAD~1")
    git(path, "checkout", "-q", "main")
    return _shape(path)


@shape
def snapshot_in_an_archive(folder: Path) -> Shape:
    made = _shape(_repository(folder))
    snapshot = gzip.compress(make_tar(made.items))
    return Shape([*made.items, Item("opt/arena/snapshot.tar.gz", snapshot)], made.rules)


@shape
def ordinary_archives(folder: Path) -> Shape:
    made = _shape(_repository(folder))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("package/__init__.py", b"")
        archive.writestr("package/LICENSE", b"Permission is hereby granted, free of charge\n" * 20)
    files = [
        Item("a.whl", out.getvalue()),
        Item("b.tar", make_tar([Item("x", b"y")])),
        Item("empty", b""),
        Item("z", bytes(2048)),
    ]
    return Shape([*made.items, *files], made.rules)
