"""Source distributions into one git repository: a commit a version, the same ids on every machine.

The versions up to the base lack the functions that a task asks for; the later ones are whole. That future is left in
the repository as public task images have it (branch, tags, remote refs, reflogs, unreachable objects), so that
stripping it is work on something real. No git runs here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.derive.layer import Entry
from pipeline.embedded.archives import ArchivedFile
from pipeline.embedded.cutting import remove_function
from pipeline.embedded.gitobjects import ObjectSet, TreeFile, make_index, make_pack
from pipeline.errors import ConfigError
from pipeline.model.release import RemovedFunction, RepositoryRecipe

FIRST_COMMIT_S = 1_500_000_000
DAY_S = 86_400
OWNER = 2000
UPSTREAM_BRANCH = "upstream"
_CONFIG = """[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
[remote "origin"]
\turl = https://example.invalid/{project}.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
\tremote = origin
\tmerge = refs/heads/main
"""


@dataclass(frozen=True)
class Version:
    """One sdist: its version, file name and source files by path."""

    version: str
    file_name: str
    files: Mapping[str, ArchivedFile]


@dataclass(frozen=True)
class History:
    """Entries relative to the repository folder (work tree and .git), and the ids of base and last commit."""

    entries: tuple[Entry, ...]
    base_commit: str
    last_commit: str


@dataclass(frozen=True)
class _Commit:
    version: str
    identity: str
    tree: Mapping[str, TreeFile]


def make_history(recipe: RepositoryRecipe, versions: Sequence[Version], where: str, epoch_s: int) -> History:
    """Build the repository of a task; versions come oldest first.

    ConfigError names `where` (the task file) when the base version is absent or last, or a removed function is nowhere.
    HostileInputError when a source to cut does not parse.
    """
    base = _base_position(recipe, versions, where)
    cut = _cut_versions(recipe, versions[: base + 1], where)
    objects = ObjectSet()
    commits = _add_commits(recipe.project, [*cut, *versions[base + 1 :]], objects)
    git = _pack_files(objects)
    git |= _loose_files(recipe.project, versions[base], commits[base - 1 if base else 0], objects)
    git |= _ref_files(recipe.project, commits, base)
    sizes = {path: len(file.data) for path, file in cut[base].files.items()}
    git["index"] = make_index(commits[base].tree, sizes, OWNER, epoch_s)
    work_tree = (_entry(path, file.data, file.mode) for path, file in cut[base].files.items())
    inside_git = (_entry(f".git/{path}", data, _git_mode(path)) for path, data in git.items())
    folders = (Entry(path, "dir", mode=0o755, uid=OWNER, gid=OWNER) for path in _folders([*git], cut[base].files))
    return History((*folders, *work_tree, *inside_git), commits[base].identity, commits[-1].identity)


def _base_position(recipe: RepositoryRecipe, versions: Sequence[Version], where: str) -> int:
    names = [version.version for version in versions]
    if recipe.base_version not in names[:-1]:
        raise ConfigError(
            f"base_version {recipe.base_version!r} is not a locked version with a later one",
            where=where,
            remedy=f"one of {', '.join(names[:-1])}",
        )
    return names.index(recipe.base_version)


def _cut_versions(recipe: RepositoryRecipe, versions: Sequence[Version], where: str) -> list[Version]:
    used: set[RemovedFunction] = set()
    cut = [_cut(version, recipe.removed, used) for version in versions]
    for removed in recipe.removed:
        if removed not in used:
            raise ConfigError(f"{removed.function} is in {removed.file} of no version up to the base", where=where)
    if cut[-1].files == versions[-1].files:
        raise ConfigError(f"nothing is removed from the base version {recipe.base_version}", where=where)
    return cut


def _cut(version: Version, removed: Sequence[RemovedFunction], used: set[RemovedFunction]) -> Version:
    files = dict(version.files)
    for item in removed:
        if item.file in files:
            before = files[item.file]
            after = remove_function(before.data, item.function, f"{version.file_name}: {item.file}")
            if after != before.data:
                used.add(item)
                files[item.file] = ArchivedFile(after, before.executable)
    return Version(version.version, version.file_name, files)


def _add_commits(project: str, versions: Sequence[Version], objects: ObjectSet) -> list[_Commit]:
    commits: list[_Commit] = []
    for number, version in enumerate(versions):
        tree = _tree(version, objects)
        parents = [commits[-1].identity] if commits else []
        message = f"{project} {version.version}\n\nImported from the sdist {version.file_name}\n"
        identity = _add_commit(project, objects.add_tree(tree), parents, number, message, objects)
        commits.append(_Commit(version.version, identity, tree))
    return commits


def _tree(version: Version, objects: ObjectSet) -> dict[str, TreeFile]:
    return {path: TreeFile(objects.add("blob", file.data), file.executable) for path, file in version.files.items()}


def _add_commit(project: str, tree: str, parents: Sequence[str], day: int, message: str, objects: ObjectSet) -> str:
    who = _signature(project, day)
    lines = [
        f"tree {tree}",
        *(f"parent {parent}" for parent in parents),
        f"author {who}",
        f"committer {who}",
        "",
        message,
    ]
    return objects.add("commit", "\n".join(lines).encode())


def _signature(project: str, day: int) -> str:
    return f"{project} importer <noreply@example.invalid> {FIRST_COMMIT_S + day * DAY_S} +0000"


def _pack_files(objects: ObjectSet) -> dict[str, bytes]:
    pack = make_pack(objects.by_id)
    return {f"objects/pack/pack-{pack.name}.pack": pack.pack, f"objects/pack/pack-{pack.name}.idx": pack.index}


def _loose_files(project: str, whole: Version, parent: _Commit, objects: ObjectSet) -> dict[str, bytes]:
    """Objects that no ref reaches: a commit of the base version with the removed functions still in it."""
    packed = set(objects.by_id)
    tree = objects.add_tree(_tree(whole, objects))
    _add_commit(project, tree, [parent.identity], 0, f"Work in progress on {whole.version}\n", objects)
    loose = {identity: item for identity, item in objects.by_id.items() if identity not in packed}
    return {f"objects/{identity[:2]}/{identity[2:]}": item.loose for identity, item in loose.items()}


def _ref_files(project: str, commits: Sequence[_Commit], base: int) -> dict[str, bytes]:
    here, last = commits[base].identity, commits[-1].identity
    tags = {f"refs/tags/v{commit.version}": commit.identity for commit in commits}
    packed = {**tags, "refs/remotes/origin/main": last}
    lines = "".join(f"{identity} {name}\n" for name, identity in sorted(packed.items()))
    moves = [
        ("0" * 40, last, f"clone: from https://example.invalid/{project}.git"),
        (last, here, f"reset: moving to {here}"),
    ]
    days = (len(commits) - 1, len(commits))
    log = "".join(
        f"{a} {b} {_signature(project, day)}\t{text}\n" for (a, b, text), day in zip(moves, days, strict=True)
    )
    created = f"{'0' * 40} {last} {_signature(project, len(commits))}\tbranch: Created from origin/main\n"
    files = {
        "HEAD": "ref: refs/heads/main\n",
        "config": _CONFIG.format(project=project),
        "packed-refs": f"# pack-refs with: peeled fully-peeled sorted \n{lines}",
        "refs/heads/main": f"{here}\n",
        f"refs/heads/{UPSTREAM_BRANCH}": f"{last}\n",
        "ORIG_HEAD": f"{last}\n",
        "FETCH_HEAD": f"{last}\t\tbranch 'main' of https://example.invalid/{project}\n",
        "logs/HEAD": log,
        "logs/refs/heads/main": log,
        f"logs/refs/heads/{UPSTREAM_BRANCH}": created,
        "info/exclude": "",
        "description": f"{project}, rebuilt from its source distributions\n",
    }
    return {path: text.encode() for path, text in files.items()}


def _entry(path: str, data: bytes, mode: int) -> Entry:
    return Entry(path, data=data, mode=mode, uid=OWNER, gid=OWNER)


def _git_mode(path: str) -> int:
    return 0o444 if path.startswith("objects/") else 0o644


def _folders(git_paths: Sequence[str], work_tree: Mapping[str, ArchivedFile]) -> list[str]:
    folders = {".git/objects/info", ".git/refs/tags", ".git/hooks"}
    for path in [*(f".git/{path}" for path in git_paths), *work_tree]:
        while "/" in path:
            path = path.rpartition("/")[0]
            folders.add(path)
    return sorted(folders)
