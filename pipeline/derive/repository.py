"""The stripped repository: exactly the objects that the base commit and kept refs reach, and nothing else.

The source is what the layers hold at the repository's git folder, later layers over earlier ones. Only its objects and
refs are read. The result is a set of entries for the repository layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

from pipeline.derive.git_files import TreeFile, list_tree, write_config, write_index, write_pack, write_packed_refs
from pipeline.derive.layer import Entry
from pipeline.derive.object_store import ObjectStore
from pipeline.errors import IntegrityError, PipelineError
from pipeline.model.record import Record
from pipeline.scan import gitfiles, tar
from pipeline.scan.buffer import Buffer, Spool
from pipeline.scan.limits import Limits
from pipeline.scan.objects import GITLINK, tree_entries
from pipeline.scan.stream import LayerStream, Reader

AGENT_ID = 2000
_SYMLINK = 0o120000
_SMALL_BYTES = 16 << 20


class StripReport(Record):
    """What the strip of one repository kept and left out. Refs are `name id`."""

    base_commit: str
    objects_kept: int
    objects_dropped: int
    refs_kept: tuple[str, ...]
    refs_dropped: tuple[str, ...]
    pack_bytes: int


@dataclass(frozen=True)
class CleanRepository:
    """Entries under the repository's path, owned by the agent, and the report. `files` is the work tree's content."""

    entries: tuple[Entry, ...]
    report: StripReport
    files: tuple[TreeFile, ...] = field(repr=False)


@dataclass
class RepositorySource:
    """Objects and names of a repository, out of layers or a folder. `paths` are relative to its git folder."""

    store: ObjectStore
    refs: dict[str, bytes] = field(default_factory=dict)
    shallow: frozenset[bytes] = frozenset()


def read_layers(
    layers: Iterable[Callable[[], BinaryIO]],
    git_path: bytes,
    limits: Limits = Limits(),  # noqa: B008
) -> RepositorySource:
    """The repository whose git folder is `git_path` (as in `workspace/repo/.git`), out of layers, bottom first."""
    found: dict[bytes, Buffer] = {}
    for open_layer in layers:
        with open_layer() as stream:
            _read_layer(stream, git_path + b"/", found, limits)
    return load_source(found.items(), limits)


def load_source(files: Iterable[tuple[bytes, Buffer]], limits: Limits = Limits()) -> RepositorySource:  # noqa: B008
    """A repository out of its files; paths are relative to the git folder. HostileInputError for damage."""
    by_path = dict(files)
    source = RepositorySource(ObjectStore(limits))
    packs = [data for path, data in by_path.items() if path.startswith(b"objects/pack/") and path.endswith(b".pack")]
    for pack in sorted(packs, key=lambda pack: pack[len(pack) - 20 :]):
        source.store.add_pack(pack)
    for path in sorted(by_path):
        data = by_path[path]
        if _is_loose_path(path):
            source.store.add_loose(data[:], "sha256" if len(path) > 60 else "sha1")
        elif path == b"shallow":
            source.shallow = frozenset(gitfiles.hex_ids(data[:]))
        elif path == b"packed-refs" or path.startswith(b"refs/"):
            _read_refs(path, data[:], source.refs)
    loose = {path for path in by_path if path.startswith(b"refs/")}
    for path in loose:  # a loose ref wins over a packed one
        _read_refs(path, by_path[path][:], source.refs)
    return source


def make_clean_repository(
    source: RepositorySource, base_commit: str, path: str, *, branch: str = "main", keep: Callable[[str], bool] = bool
) -> CleanRepository:
    """Entries for the repository at `path` (relative), HEAD on `branch` at the base commit, work tree checked out.

    `keep` chooses among the refs of the source that are ancestors; pass `lambda _: False` for none. IntegrityError when
    the repository lacks an object that the base commit needs.
    """
    store, base = source.store, bytes.fromhex(base_commit)
    if base not in store.places or store.graph.objects[base].kind != "commit":
        raise IntegrityError(f"the base commit {base_commit} is not in the repository", where=path)
    reached = store.graph.reach([base])
    _check_complete(source, reached, path)
    refs = {f"refs/heads/{branch}": base}
    peeled: dict[str, bytes] = {}
    kept = {one for one in reached if one in store.places}
    for name, one in sorted(source.refs.items()):
        if name not in refs and keep(name) and (target := _ancestor(source, one, kept, peeled, name)):
            refs[name] = one
            kept |= target
    pack = write_pack(store, kept, base)
    files = list_tree(store, store.graph.objects[base].links[0])
    git = {
        "HEAD": f"ref: refs/heads/{branch}\n".encode(), "config": write_config(store.form),
        "index": write_index(files, store.form), "packed-refs": write_packed_refs(refs, peeled),
        f"objects/pack/pack-{pack.name}.pack": pack.data, f"objects/pack/pack-{pack.name}.idx": pack.index,
    }  # fmt: skip
    if boundary := sorted(
        one for one in source.shallow if one in kept and source.store.missing(store.graph.objects[one].links)
    ):
        git["shallow"] = b"".join(one.hex().encode() + b"\n" for one in boundary)
    dropped = tuple(f"{name} {one.hex()}" for name, one in sorted(source.refs.items()) if refs.get(name) != one)
    report = StripReport(
        base_commit=base_commit, objects_kept=len(kept), objects_dropped=len(store.places) - len(kept),
        refs_kept=tuple(f"{name} {one.hex()}" for name, one in sorted(refs.items())), refs_dropped=dropped,
        pack_bytes=len(pack.data),
    )  # fmt: skip
    entries = (*_git_entries(path, git), *_work_entries(path, store, files))
    return CleanRepository(entries, report, tuple(files))


def _read_layer(stream: BinaryIO, prefix: bytes, found: dict[bytes, Buffer], limits: Limits) -> None:
    reader = Reader(LayerStream(stream, limits.layer_bytes).chunks())
    for member in tar.walk(reader, limits):
        folder, _, name = member.path.rpartition(b"/")
        if name.startswith(b".wh."):
            _apply_whiteout(folder + b"/" + name[4:] if folder else name[4:], folder, name, prefix, found)
        elif member.kind == "file" and member.path.startswith(prefix):
            spool = Spool()  # stays open as long as the buffer is used
            for piece in reader.pieces(member.size):
                spool.write(piece)
            found[member.path[len(prefix) :]] = spool.buffer()


def _apply_whiteout(hidden: bytes, folder: bytes, name: bytes, prefix: bytes, found: dict[bytes, Buffer]) -> None:
    gone = folder if name == b".wh..wh..opq" else hidden
    for path in list(found):
        whole = prefix + path
        if whole == gone or whole.startswith(gone + b"/"):
            del found[path]


def _is_loose_path(path: bytes) -> bool:
    parts = path.split(b"/")
    return len(parts) == 3 and parts[0] == b"objects" and len(parts[1]) == 2 and len(parts[2]) in (38, 62)


def _read_refs(path: bytes, data: bytes, refs: dict[str, bytes]) -> None:
    for how, ids in gitfiles.named_ids(path, data):
        name = how.partition("packed-refs ")[2] or path.decode("utf-8", "replace")
        if ids and name.startswith("refs/") and "\n" not in name:
            refs[name] = ids[0]


def _check_complete(source: RepositorySource, reached: set[bytes], path: str) -> None:
    """Only what a shallow boundary and submodules name may be absent."""
    missing = set(source.store.missing(reached))
    if not missing:
        return
    excused: set[bytes] = set()
    for one in reached - missing:
        made = source.store.graph.objects[one]
        if made.kind == "commit" and one in source.shallow:
            excused.update(made.links[1:])
        elif made.kind == "tree" and missing.intersection(made.links):
            lines = tree_entries(source.store.read(one), source.store.form)
            excused.update(line.id for line in lines if line.mode == GITLINK)
    if lost := sorted(missing - excused):
        raise IntegrityError(
            f"the repository lacks {len(lost)} objects that its base commit needs, first {lost[0].hex()}",
            where=path, remedy="name every git folder that holds them; alternates of an image are not followed",
        )  # fmt: skip


def _ancestor(
    source: RepositorySource, one: bytes, kept: set[bytes], peeled: dict[str, bytes], name: str
) -> set[bytes] | None:
    """The tag objects to keep for a ref whose target is kept; None for any other ref."""
    tags: set[bytes] = set()
    current = one
    while (made := source.store.graph.objects.get(current)) is not None and made.kind == "tag":
        tags.add(current)
        current = made.links[0]
    if current not in kept or current not in source.store.places:
        return None
    if tags:
        peeled[name] = current
    return tags or {current}


def _git_entries(path: str, files: Mapping[str, bytes]) -> Iterator[Entry]:
    for folder in ("", "/objects", "/objects/info", "/objects/pack", "/refs", "/refs/heads", "/refs/tags"):
        yield _owned(f"{path}/.git{folder}", "dir", b"", 0o755)
    for name, data in files.items():
        yield _owned(f"{path}/.git/{name}", "file", data, 0o444 if "/pack/" in name else 0o644)


def _work_entries(path: str, store: ObjectStore, files: Sequence[TreeFile]) -> Iterator[Entry]:
    yield _owned(path, "dir", b"", 0o755)
    folders: set[bytes] = set()
    for file in files:
        parts = file.path.split(b"/")
        folders.update(b"/".join(parts[:count]) for count in range(1, len(parts)))
    for folder in sorted(folders):
        yield _owned(f"{path}/{_text(folder)}", "dir", b"", 0o755)
    for file in files:
        name = f"{path}/{_text(file.path)}"
        if file.mode == int(GITLINK, 8):
            yield _owned(name, "dir", b"", 0o755)
        elif file.mode == _SYMLINK:
            yield Entry(name, "symlink", b"", 0o777, AGENT_ID, AGENT_ID, _text(store.read(file.id)))
        else:
            yield _owned(name, "file", store.read(file.id), 0o755 if file.mode & 0o100 else 0o644)


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _owned(path: str, kind: str, data: bytes, mode: int) -> Entry:
    if kind == "dir":
        return Entry(path, "dir", b"", mode, AGENT_ID, AGENT_ID)
    if kind != "file":
        raise PipelineError(f"no entry of kind {kind}", where=path)
    return Entry(path, "file", data, mode, AGENT_ID, AGENT_ID)
