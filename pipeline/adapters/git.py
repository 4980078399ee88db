"""Repositories on disk: made without git, proved with dulwich, which had no part in making them.

The source is read file by file without following links; its hooks, config, alternates and reflogs are never looked at.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dulwich.objects import Commit, ObjectID, Tag, Tree
from dulwich.repo import Repo

from pipeline.derive.layer import Entry
from pipeline.derive.repository import CleanRepository, RepositorySource, load_source
from pipeline.errors import HostileInputError, IntegrityError, StorageError
from pipeline.scan.buffer import Buffer, FileBuffer

_GITLINK = 0o160000


def prove_clean(clean: CleanRepository) -> int:
    """Write a rebuilt repository into a folder of its own and prove it there; how many objects it holds."""
    with tempfile.TemporaryDirectory() as folder:
        write_repository(clean, Path(folder) / "repository")
    return clean.report.objects_kept


def read_folder(repository_path: Path) -> RepositorySource:
    """The repository in a folder (its `.git`, or itself when it is bare)."""
    git_path = repository_path / ".git" if (repository_path / ".git").is_dir() else repository_path
    return load_source(_files(git_path))


def write_repository(clean: CleanRepository, destination_path: Path) -> None:
    """Write the entries below a new folder and prove them; StorageError when it exists or cannot be written."""
    if destination_path.exists():
        raise StorageError("the destination of a repository exists already", where=str(destination_path))
    top = min((entry.path for entry in clean.entries), key=len).removesuffix("/.git")
    partial = destination_path.with_name(destination_path.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        for entry in sorted(clean.entries, key=lambda entry: entry.path):
            _write(partial / entry.path[len(top) + 1 :] if entry.path != top else partial, entry)
        prove_exact(partial)
        partial.rename(destination_path)
    except OSError as error:
        raise StorageError(f"cannot write a repository: {error.strerror}", where=str(destination_path)) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def prove_exact(repository_path: Path) -> int:
    """Check with dulwich that the repository holds exactly what its HEAD and refs reach; how many objects.

    IntegrityError when an object is too many or too few.
    """
    with Repo(str(repository_path)) as repository:
        held = set(repository.object_store)
        boundary = set(repository.get_shallow())
        waiting = [repository.head(), *repository.get_refs().values()]
        reached: set[ObjectID] = set()
        while waiting:
            one = waiting.pop()
            if one not in reached:
                reached.add(one)
                waiting += _links(repository, one, boundary)
    if held != reached:
        raise IntegrityError(
            f"a stripped repository has {len(held - reached)} objects too many and {len(reached - held)} too few",
            where=str(repository_path),
        )
    return len(held)


def _links(repository: Repo, one: ObjectID, boundary: set[ObjectID]) -> list[ObjectID]:
    try:
        made = repository.object_store[one]
    except KeyError:
        return []
    if isinstance(made, Commit):
        return [made.tree, *(() if one in boundary else made.parents)]
    if isinstance(made, Tree):
        return [entry.sha for entry in made.items() if entry.mode != _GITLINK]
    return [made.object[1]] if isinstance(made, Tag) else []


def _files(git_path: Path) -> Iterator[tuple[bytes, Buffer]]:
    """Regular files that the strip reads, relative to the git folder; links are refused, not followed."""
    top = os.fsencode(git_path)
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)  # noqa: PTH118  (bytes paths)
            relative = path[len(top) + 1 :]
            if not relative.startswith((b"objects/", b"refs/")) and relative not in (b"packed-refs", b"shallow"):
                continue
            if not stat.S_ISREG(os.lstat(path).st_mode):
                raise HostileInputError("a git folder with a file that is not regular", where=os.fsdecode(path))
            yield relative, _read(path)


def _read(path: bytes) -> Buffer:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    file = os.fdopen(descriptor, "rb")
    if os.fstat(descriptor).st_size > 16 << 20:
        return FileBuffer(file)
    with file:
        return file.read()


def _write(path: Path, entry: Entry) -> None:
    if entry.kind == "dir":
        path.mkdir(mode=0o755, parents=True, exist_ok=True)
    elif entry.kind == "symlink":
        path.symlink_to(entry.target)
    else:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        path.write_bytes(entry.data)
        path.chmod(entry.mode)
