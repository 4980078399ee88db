"""The stripped repository: exactly what the base reaches, sound to git, proved by dulwich, the same bytes each time."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.adapters.git import prove_clean, prove_exact, read_folder, write_repository
from pipeline.derive.git_files import list_tree, write_packed_refs
from pipeline.derive.layer import Entry
from pipeline.derive.object_store import ObjectStore
from pipeline.derive.repository import CleanRepository, load_source, make_clean_repository, read_layers
from pipeline.errors import HostileInputError, IntegrityError, StorageError
from tests.fakes.leaks import REPO, Item, World, git, make_tar, tree_items


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def clean(world: World, path: Path | None = None, base: str = "", **more: object) -> CleanRepository:
    return make_clean_repository(read_folder(path or world.source), base or world.base, REPO, **more)  # type: ignore[arg-type]


def objects(path: Path) -> set[str]:
    return set(git(path, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").decode().split())


def reachable(path: Path, revision: str) -> set[str]:
    return set(git(path, "rev-list", "--objects", "--no-object-names", revision).decode().split())


def variants(world: World) -> Iterator[Path]:
    """The same history stored in four ways."""
    yield world.source
    packed = world.clone("packed")
    git(packed, "repack", "-q", "-a", "-d", "-f", "--depth=50", "--window=50")
    yield packed
    mixed = world.clone("mixed")
    pack = next((mixed / ".git/objects/pack").glob("*.pack"))
    pack.chmod(0o644)
    moved = shutil.move(pack, world.folder / "moved.pack")
    git(mixed, "unpack-objects", "-q", stdin=Path(moved).read_bytes())
    git(mixed, "repack", "-q", "--window=0")
    yield mixed


def test_git_and_dulwich_agree_that_it_is_exact_and_sound(world: World) -> None:
    for number, source in enumerate(variants(world)):
        made = clean(world, source, keep=lambda _: False)
        target = world.folder / f"out{number}"
        write_repository(made, target)
        assert objects(target) == reachable(world.source, "v4")
        assert prove_exact(target) == made.report.objects_kept
        git(target, "fsck", "--full", "--strict")
        assert git(target, "status", "--porcelain") == b""
        assert git(target, "rev-parse", "HEAD").decode().strip() == world.base
        assert git(target, "for-each-ref", "--format=%(refname)") == b"refs/heads/main\n"
        assert (target / "core.py").read_bytes() == git(world.source, "show", "v4:core.py")
        assert sorted(path.name for path in (target / ".git").iterdir()) == [
            "HEAD", "config", "index", "objects", "packed-refs", "refs",
        ]  # fmt: skip


def test_the_same_source_gives_the_same_bytes(world: World) -> None:
    first, second = clean(world), clean(world)
    assert first.entries == second.entries
    assert {(entry.uid, entry.gid) for entry in first.entries} == {(2000, 2000)}


def test_no_byte_of_the_future_is_left(world: World) -> None:
    made = clean(world, world.clone("packed"))
    plain = b"".join(entry.data for entry in made.entries) + b"".join(_inflated(made))
    assert b"lookup" not in plain
    assert world.head.encode() not in plain


def test_ancestor_tags_stay_when_asked_and_later_ones_never(world: World) -> None:
    git(world.source, "tag", "-a", "-m", "two", "release-2", "v2")
    made = clean(world, keep=lambda name: name.startswith("refs/tags/"))
    names = [line.split()[0] for line in made.report.refs_kept]
    assert names == ["refs/heads/main", *(f"refs/tags/{name}" for name in ("release-2", "v1", "v2", "v3", "v4"))]
    target = world.folder / "out"
    write_repository(made, target)
    git(target, "fsck", "--full", "--strict")
    assert git(target, "describe", "--tags", "v3~1") == b"release-2\n"
    assert [line.split()[0] for line in made.report.refs_dropped] == ["refs/heads/main", "refs/tags/v5", "refs/tags/v6"]


def test_hooks_config_and_alternates_are_not_honoured(world: World) -> None:
    hook = world.source / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch /tmp/never\n")
    hook.chmod(0o755)
    git(world.source, "config", "core.fsmonitor", "touch /tmp/never")
    made = clean(world)
    paths = {entry.path for entry in made.entries}
    assert not any("hooks" in path for path in paths)
    config = next(entry for entry in made.entries if entry.path.endswith(".git/config"))
    assert b"fsmonitor" not in config.data
    git(world.folder, "clone", "-q", "--shared", str(world.source), "alternate")
    with pytest.raises(IntegrityError, match="is not in the repository"):
        clean(world, world.folder / "alternate")


def test_a_missing_object_is_an_error(world: World) -> None:
    blob = world.id_of("v4:core.py")
    (world.source / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(IntegrityError, match=f"lacks 1 objects.*{blob}"):
        clean(world)
    with pytest.raises(IntegrityError, match="is not in the repository"):
        clean(world, base="0" * 40)


def test_a_shallow_base_keeps_its_boundary(world: World) -> None:
    git(world.folder, "clone", "-q", "--depth", "1", "--branch", "v4", f"file://{world.source}", "shallow")
    write_repository(clean(world, world.folder / "shallow"), world.folder / "out")
    assert (world.folder / "out/.git/shallow").read_text() == world.base + "\n"
    git(world.folder / "out", "fsck", "--full")
    assert git(world.folder / "out", "log", "--format=%H").decode().split() == [world.base]


def test_sha256_submodules_links_and_hard_names(tmp_path: Path) -> None:
    path = tmp_path / "source"
    path.mkdir()
    git(path, "init", "-q", "-b", "main", "--object-format=sha256")
    (path / "run").write_text("#!/bin/sh\n")
    (path / "run").chmod(0o755)
    (path / "link").symlink_to("run")
    (path / "deep/er").mkdir(parents=True)
    Path(os.fsdecode(os.fsencode(path) + b"/deep/er/\xff\n")).write_text("odd")
    git(path, "add", ".")
    git(path, "update-index", "--add", "--cacheinfo", f"160000,{'a' * 64},module")
    git(path, "commit", "-qm", "one")
    base = git(path, "rev-parse", "HEAD").decode().strip()
    made = make_clean_repository(read_folder(path), base, REPO)
    entries = {entry.path: entry for entry in made.entries}
    assert entries[f"{REPO}/run"].mode == 0o755
    assert (entries[f"{REPO}/link"].kind, entries[f"{REPO}/link"].target) == ("symlink", "run")
    assert entries[f"{REPO}/module"].kind == "dir"
    assert f"{REPO}/deep/er/\udcff\n" in entries
    out = tmp_path / "out"
    for entry in sorted(made.entries, key=lambda entry: entry.path):
        _write(tmp_path / "out" / entry.path[len(REPO) + 1 :] if entry.path != REPO else out, entry)
    git(out, "fsck", "--full", "--strict")
    assert objects(out) == reachable(path, "HEAD")
    assert git(out, "status", "--porcelain") == b""


def test_out_of_layers_with_whiteouts(world: World) -> None:
    below = tree_items(world.source / ".git", f"{REPO}/.git")
    later = [Item(f"{REPO}/.git/refs/tags/.wh.v2"), Item(f"{REPO}/.git/refs/tags/v3", world.id_of("v1").encode())]
    blobs = [gzip.compress(make_tar(below)), make_tar(later)]
    source = read_layers([lambda blob=blob: io.BytesIO(blob) for blob in blobs], f"{REPO}/.git".encode())
    assert "refs/tags/v2" not in source.refs
    assert source.refs["refs/tags/v3"].hex() == world.id_of("v1")
    assert make_clean_repository(source, world.base, REPO).report.objects_kept == len(reachable(world.source, "v4"))


@pytest.mark.parametrize("name", [b"..", b".", b".git", b".GIT", b"a/b"])
def test_a_tree_that_leaves_the_work_tree_is_refused(name: bytes) -> None:
    store = ObjectStore()
    blob = store.add_object("blob", b"x")
    tree = store.add_object("tree", b"100644 " + name + b"\0" + blob.id)
    with pytest.raises(HostileInputError, match="must not be checked out"):
        list_tree(store, tree.id)


def test_damaged_objects_are_refused() -> None:
    with pytest.raises(HostileInputError, match="checksum"):
        load_source([(b"objects/pack/a.pack", b"PACK\0\0\0\2" + bytes(60))])
    with pytest.raises(HostileInputError, match="another size"):
        load_source([(b"objects/aa/" + b"a" * 38, zlib.compress(b"blob 9\0x"))])


def rebuilt(world: World) -> CleanRepository:
    """The world's repository at its base commit, no refs kept."""
    return make_clean_repository(read_folder(world.source), world.base, "repository", keep=lambda _: False)


def test_what_is_written_is_proved_and_never_written_over(world: World) -> None:
    clean, target = rebuilt(world), world.folder / "out"
    write_repository(clean, target)
    assert git(target, "rev-parse", "HEAD").decode().strip() == world.base
    assert prove_clean(clean) == clean.report.objects_kept == prove_exact(target)
    with pytest.raises(StorageError, match="exists already"):
        write_repository(clean, target)


def test_the_proof_fails_on_one_object_too_many_or_too_few(world: World) -> None:
    target = world.folder / "out"
    write_repository(rebuilt(world), target)
    place, data = world.future_objects[0]
    (target / ".git" / place).parent.mkdir(exist_ok=True)
    (target / ".git" / place).write_bytes(data)
    with pytest.raises(IntegrityError, match="1 objects too many and 0 too few"):
        prove_exact(target)


def test_links_in_a_git_folder_are_refused(world: World) -> None:
    (world.source / ".git/refs/heads/link").symlink_to("/etc/passwd")
    with pytest.raises(HostileInputError, match="not regular"):
        read_folder(world.source)


def test_packed_refs_are_sorted_by_bytes() -> None:
    text = write_packed_refs({"refs/tags/b": b"\1" * 20, "refs/tags/B": b"\2" * 20}, {"refs/tags/b": b"\3" * 20})
    assert [line.split(b" ")[-1] for line in text.splitlines()[1:]] == [
        b"refs/tags/B",
        b"refs/tags/b",
        b"^" + b"03" * 20,
    ]


def _inflated(made: CleanRepository) -> Iterator[bytes]:
    pack = next(entry.data for entry in made.entries if entry.path.endswith(".pack"))
    store = ObjectStore()
    store.add_pack(pack)
    yield from (store.read(one) for one in store.places)


def _write(path: Path, entry: Entry) -> None:
    if entry.kind == "dir":
        path.mkdir(parents=True, exist_ok=True)
    elif entry.kind == "symlink":
        path.symlink_to(entry.target)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(entry.data)
        path.chmod(entry.mode)


MAKE = """
import hashlib, sys
from pathlib import Path
from pipeline.adapters.git import read_folder
from pipeline.derive.repository import make_clean_repository
made = make_clean_repository(read_folder(Path(sys.argv[1])), sys.argv[2], "r")
print(hashlib.sha256(repr(made.entries).encode() + b"".join(entry.data for entry in made.entries)).hexdigest())
"""


def test_hash_seed_locale_and_umask_do_not_matter(world: World) -> None:
    made = set()
    for seed, locale, mask in (("1", "C", 0o022), ("2", "C.UTF-8", 0o077)):
        environment = os.environ | {"PYTHONHASHSEED": seed, "LC_ALL": locale, "TZ": f"UTC-{seed}"}
        command = [sys.executable, "-c", MAKE, str(world.source), world.base]
        done = subprocess.run(command, env=environment, umask=mask, capture_output=True, text=True, check=True)
        made.add(done.stdout)
    assert len(made) == 1
