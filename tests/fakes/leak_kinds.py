"""Every kind of leak that the scan must find, one function a kind."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import marshal
import tarfile
import zipfile
from dataclasses import replace

import zstandard

from pipeline.derive.fixtures import make_fingerprints
from tests.fakes.leaks import REPO, Case, Item, World, git, leak, make_tar, source_text, tree_items

GIT = f"{REPO}/.git"
FIXTURE = source_text("solver", 9)


def _named(world: World, path: str, data: bytes) -> Case:
    return Case(world.with_items(Item(f"{GIT}/{path}", data)), 1, f"{GIT}/{path}")


def _file(world: World, path: str, data: bytes, inside: str = "", **more: object) -> Case:
    return Case(world.with_items(Item(path, data)), 1, path + inside, **more)  # type: ignore[arg-type]


def _bare(world: World) -> list[Item]:
    return tree_items(world.clone("bare.git", "--bare"), "copy.git")


@leak
def future_branch(world: World) -> Case:
    items = tree_items(world.source, REPO, 2000)
    return Case([world.root_items, items], 1, f"{GIT}/objects")


@leak
def packed_future_branch(world: World) -> Case:
    items = tree_items(world.clone("packed"), REPO, 2000)
    return Case([world.root_items, items], 1, f"{GIT}/objects/pack")


@leak
def dangling_loose_objects(world: World) -> Case:
    items = [Item(f"{GIT}/{path}", data) for path, data in world.future_objects]
    return Case(world.with_items(*items), 1, f"{GIT}/objects/")


@leak
def one_dangling_blob(world: World) -> Case:
    one = world.id_of("v6:lookup.py")
    path = f"objects/{one[:2]}/{one[2:]}"
    return _named(world, path, (world.source / ".git" / path).read_bytes())


@leak
def dangling_pack(world: World) -> Case:
    pack = git(world.source, "pack-objects", "--revs", "--stdout", "-q", stdin=b"v6\n^v4\n")
    return _named(world, "objects/pack/pack-1.pack", pack)


@leak
def cruft_pack(world: World) -> Case:
    clone = world.clone("cruft")
    git(clone, "reset", "-q", "--hard", "v4")
    git(clone, "update-ref", "-d", "refs/remotes/origin/main")
    git(clone, "tag", "-d", "v5", "v6")
    git(clone, "remote", "remove", "origin")
    git(clone, "reflog", "expire", "--expire=now", "--all")
    git(clone, "repack", "--cruft", "-d", "-q")
    return Case([world.root_items, tree_items(clone, REPO, 2000)], 1, f"{GIT}/objects/pack")


@leak
def pack_behind_other_data(world: World) -> Case:
    pack = git(world.source, "pack-objects", "--revs", "--stdout", "-q", stdin=b"v6\n")
    return _file(world, "opt/install.sh", b"#!/bin/sh\ntail -n +2 $0\n" + pack)


@leak
def pack_compressed_many_times(world: World) -> Case:
    pack = git(world.source, "pack-objects", "--revs", "--stdout", "-q", stdin=b"v6\n")
    old = lzma.compress(gzip.compress(bz2.compress(pack)), format=lzma.FORMAT_ALONE)
    return _file(world, "opt/data", old, "//////")


@leak
def archive_that_is_not_opened(world: World) -> Case:
    return _file(world, "opt/data.7z", b"7z\xbc\xaf\x27\x1c" + bytes(100), kind="unreadable")


@leak
def pack_of_another_name(world: World) -> Case:
    pack = git(world.source, "pack-objects", "--revs", "--stdout", "-q", stdin=b"v6\n")
    return _file(world, "var/cache/blob.bin", pack)


@leak
def annotated_future_tag(world: World) -> Case:
    git(world.source, "tag", "-a", "-m", "the answer", "release", "v6", at=9000)
    one = world.id_of("release")
    path = f"objects/{one[:2]}/{one[2:]}"
    return _named(world, path, (world.source / ".git" / path).read_bytes())


@leak
def future_ref_without_objects(world: World) -> Case:
    return _named(world, "refs/remotes/origin/main", world.head.encode() + b"\n")


@leak
def packed_refs(world: World) -> Case:
    items = [item for item in world.clean_items if item.path != f"{GIT}/packed-refs"]
    refs = f"{world.base} refs/heads/main\n{world.head} refs/remotes/origin/main\n".encode()
    return Case([world.root_items, [*items, Item(f"{GIT}/packed-refs", refs)]], 1, f"{GIT}/packed-refs")


@leak
def reflog(world: World) -> Case:
    line = f"{world.base} {world.head} A <a@example.invalid> 1600006000 +0000\tpull\n".encode()
    return _named(world, "logs/HEAD", line)


@leak
def orig_head(world: World) -> Case:
    return _named(world, "ORIG_HEAD", world.head.encode() + b"\n")


@leak
def fetch_head(world: World) -> Case:
    return _named(world, "FETCH_HEAD", f"{world.head}\t\tbranch 'main' of example\n".encode())


@leak
def merge_head(world: World) -> Case:
    return _named(world, "MERGE_HEAD", world.head.encode() + b"\n")


@leak
def bisect_log(world: World) -> Case:
    return _named(world, "BISECT_LOG", f"# bad: [{world.head}] version 6\ngit bisect bad {world.head}\n".encode())


@leak
def rebase_state(world: World) -> Case:
    return _named(world, "rebase-merge/onto", world.head.encode() + b"\n")


@leak
def refs_for_dumb_servers(world: World) -> Case:
    return _named(world, "info/refs", f"{world.head}\trefs/heads/main\n".encode())


@leak
def grafts(world: World) -> Case:
    return _named(world, "info/grafts", f"{world.base} {world.head}\n".encode())


@leak
def lost_and_found(world: World) -> Case:
    return _named(world, f"lost-found/commit/{world.head}", world.head.encode() + b"\n")


@leak
def refs_that_are_not_read(world: World) -> Case:
    case = _named(world, "reftable/0x000000000001-0x000000000002.ref", b"REFT\1" + bytes(80))
    return replace(case, kind="unreadable")


@leak
def shallow_file(world: World) -> Case:
    return _named(world, "shallow", world.id_of("v5").encode() + b"\n")


@leak
def index_of_the_future(world: World) -> Case:
    git(world.source, "reset", "-q", "--hard", "v6")
    items = [item for item in world.clean_items if item.path != f"{GIT}/index"]
    items.append(Item(f"{GIT}/index", (world.source / ".git/index").read_bytes()))
    return Case([world.root_items, items], 1, f"{GIT}/index")


@leak
def stash(world: World) -> Case:
    clone = world.clone("stash", "--single-branch", "--branch", "v4")
    (clone / "core.py").write_bytes(source_text("core", 8))
    git(clone, "stash", "-q", at=9000)
    one = world.base and git(clone, "rev-parse", "refs/stash").decode().strip()
    return Case([world.root_items, tree_items(clone, REPO, 2000)], 1, f"{GIT}/objects/{one[:2]}")


@leak
def notes(world: World) -> Case:
    git(world.source, "notes", "add", "-m", "the answer is in v6", "v4", at=9000)
    one = world.id_of("refs/notes/commits")
    path = f"objects/{one[:2]}/{one[2:]}"
    return _named(world, path, (world.source / ".git" / path).read_bytes())


@leak
def replace_ref(world: World) -> Case:
    return _named(world, f"refs/replace/{world.base}", world.head.encode() + b"\n")


@leak
def worktree(world: World) -> Case:
    git(world.source, "worktree", "add", "-q", "--detach", str(world.folder / "tree"), "v6")
    items = tree_items(world.source / ".git/worktrees", f"{GIT}/worktrees")
    return Case(world.with_items(*items), 1, f"{GIT}/worktrees/tree")


@leak
def alternates(world: World) -> Case:
    items = [Item(f"opt/objects/{path.partition('/')[2]}", data) for path, data in world.future_objects]
    link = Item(f"{GIT}/objects/info/alternates", b"/opt/objects\n")
    return Case(world.with_items(link, *items), 1, "opt/objects/")


@leak
def bare_clone(world: World) -> Case:
    return Case(world.with_items(*_bare(world)), 1, "copy.git/objects/pack")


@leak
def renamed_store(world: World) -> Case:
    items = [Item(f"srv/data/{number}", data) for number, (_, data) in enumerate(world.future_objects)]
    return Case(world.with_items(*items), 1, "srv/data/")


@leak
def submodule_store(world: World) -> Case:
    items = tree_items(world.clone("module.git", "--bare"), f"{GIT}/modules/module")
    return Case(world.with_items(*items), 1, f"{GIT}/modules/module/objects")


@leak
def bundle(world: World) -> Case:
    path = world.folder / "all.bundle"
    git(world.source, "bundle", "create", "-q", str(path), "--all")
    return _file(world, "root/all.bundle", path.read_bytes())


@leak
def pack_index_alone(world: World) -> Case:
    clone = world.clone("indexed")
    index = next((clone / ".git/objects/pack").glob("*.idx")).read_bytes()
    return _named(world, "objects/pack/old.idx", index)


@leak
def multi_pack_index(world: World) -> Case:
    clone = world.clone("midx")
    git(clone, "multi-pack-index", "write")
    return _named(world, "objects/pack/multi-pack-index", (clone / ".git/objects/pack/multi-pack-index").read_bytes())


@leak
def commit_graph(world: World) -> Case:
    clone = world.clone("graph")
    git(clone, "commit-graph", "write", "--reachable")
    return _named(world, "objects/info/commit-graph", (clone / ".git/objects/info/commit-graph").read_bytes())


@leak
def repository_in_tar_gz(world: World) -> Case:
    return _file(world, "backup.tar.gz", gzip.compress(make_tar(_bare(world))), "////copy.git/objects")


@leak
def repository_in_tar_xz(world: World) -> Case:
    return _file(world, "backup.tar.xz", lzma.compress(make_tar(_bare(world))), "////copy.git/objects")


@leak
def repository_in_tar_bz2(world: World) -> Case:
    return _file(world, "backup", bz2.compress(make_tar(_bare(world))), "////copy.git/objects")


@leak
def repository_in_tar_zst(world: World) -> Case:
    return _file(world, "b.tzst", zstandard.compress(make_tar(_bare(world))), "////copy.git/objects")


def _zip(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


@leak
def repository_three_archives_deep(world: World) -> Case:
    inner = gzip.compress(make_tar(_bare(world)))
    middle = _zip({"inner.tar.gz": inner})
    outer = make_tar([Item("middle.zip", middle)])
    return _file(world, "outer.tar", outer, "//middle.zip//inner.tar.gz////copy.git")


@leak
def wheel_in_a_pip_cache(world: World) -> Case:
    wheel = _zip({"package/lookup.py": world.future_text(), "package/__init__.py": b""})
    items = [*_hint(world), Item("root/.cache/pip/http/5/a/b", wheel)]
    return Case(world.with_items(*items), 1, "root/.cache/pip/http/5/a/b//package/lookup.py")


def _hint(world: World) -> list[Item]:
    """Content alone says nothing without a store that has the future; here one is left in the same image."""
    return [Item(f"{GIT}/{path}", data) for path, data in world.future_objects]


@leak
def future_known_from_the_source_history(world: World) -> Case:
    ids = git(world.source, "rev-list", "--objects", "--no-object-names", "v6", "^v4").decode().split()
    rules = world.rules(future_objects=frozenset(ids))
    return _file(world, f"{REPO}/lookup.py.orig", world.future_text(), rules=rules)


@leak
def patch_that_names_ids(world: World) -> Case:
    patch = git(world.source, "format-patch", "--stdout", "v4..v6")
    ids = git(world.source, "rev-list", "--objects", "--no-object-names", "v6", "^v4").decode().split()
    return _file(world, "tmp/fix.patch", patch, rules=world.rules(future_objects=frozenset(ids)))


@leak
def patch_without_ids(world: World) -> Case:
    patch = git(world.source, "diff", "v4", "v6", "--", "lookup.py")
    text = b"".join(line for line in patch.splitlines(True) if not line.startswith(b"index "))
    return _file(world, "tmp/notes.txt", text, rules=world.rules(fingerprints=world.future_prints))


@leak
def bytecode(world: World) -> Case:
    code = compile(world.future_text(), "lookup.py", "exec")
    data = b"\xa7\r\r\n" + bytes(12) + marshal.dumps(code)
    path = f"{REPO}/__pycache__/lookup.cpython-311.pyc"
    return _file(world, path, data, rules=world.rules(fingerprints=world.future_prints))


@leak
def buried_under_a_whiteout(world: World) -> Case:
    layers = [world.root_items, tree_items(world.source, REPO, 2000), [Item("workspace/.wh.repo")], world.clean_items]
    return Case(layers, 1, f"{GIT}/objects", reach="buried")


@leak
def buried_under_an_opaque_folder(world: World) -> Case:
    top = [Item(f"{GIT}/.wh..wh..opq"), *world.clean_items]
    return Case([world.root_items, tree_items(world.source, REPO, 2000), top], 1, f"{GIT}/objects", reach="buried")


@leak
def behind_a_folder_of_root(world: World) -> Case:
    locked = Item("opt/locked", kind=tarfile.DIRTYPE, mode=0o700)
    items = [Item(f"opt/locked/{item.path}", item.data, item.kind, item.mode) for item in _bare(world)]
    return Case(world.with_items(locked, *items), 1, "opt/locked/copy.git/objects", reach="protected")


@leak
def hard_link_out_of_a_locked_folder(world: World) -> Case:
    locked = Item("opt/locked", kind=tarfile.DIRTYPE, mode=0o700)
    pack = git(world.source, "pack-objects", "--revs", "--stdout", "-q", stdin=b"v6\n")
    link = Item("var/data", kind=tarfile.LNKTYPE, target="opt/locked/pack")
    return Case(world.with_items(locked, Item("opt/locked/pack", pack), link), 1, "opt/locked/pack")


@leak
def objects_in_another_layer(world: World) -> Case:
    items = [Item(f"{GIT}/{path}", data) for path, data in world.future_objects]
    return Case([world.root_items, world.clean_items, items], 2, f"{GIT}/objects/")


def _fixture(world: World, path: str, data: bytes, inside: str = "") -> Case:
    rules = world.rules(fingerprints=make_fingerprints({"fixtures/solver.py": FIXTURE}))
    return _file(world, path, data, inside, kind="fixture", rules=rules)


@leak
def fixture_as_it_is(world: World) -> Case:
    return _fixture(world, "opt/tool.py", FIXTURE)


@leak
def fixture_with_other_line_ends(world: World) -> Case:
    return _fixture(world, "opt/tool.py", b"\r\n".join(b"  " + line for line in FIXTURE.splitlines()))


@leak
def fixture_inside_another_file(world: World) -> Case:
    return _fixture(world, "opt/tool.py", source_text("other", 1) + FIXTURE[1000:3000] + source_text("other", 2))


@leak
def fixture_in_an_archive(world: World) -> Case:
    return _fixture(world, "opt/tools.zip", _zip({"a/solver.py": FIXTURE}), "//a/solver.py")


@leak
def fixture_by_path(world: World) -> Case:
    rules = world.rules(path_patterns=("*/fixtures/*",))
    return _file(world, "opt/fixtures/empty.txt", b"x", kind="fixture", rules=rules)
