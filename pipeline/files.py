"""Files of the workspace: nothing half-written is ever taken for complete, and a lock names its holder.

Used by stages, adapters and embedded services alike. A file is written beside its destination and renamed; what a
killed process left is called `.partial-*` and is removed by `remove_partials` under the workspace's lock.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import platform
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from pipeline.errors import HostileInputError, LockedError, StorageError

PARTIAL_PREFIX = ".partial-"
_STORAGE_ERRNOS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO}
_MAX_HOLDER_BYTES = 4096
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # fcntl.h, linux/fs.h


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn a full, read-only or broken disk into a StorageError that names `path`; other OSErrors pass through."""
    try:
        yield
    except OSError as error:
        if error.errno not in _STORAGE_ERRNOS:
            raise
        raise StorageError(
            f"cannot write: {os.strerror(error.errno or 0)}",
            where=str(path),
            remedy="free space or make the disk writable, then run the same command again",
        ) from error


def make_private_folder(path: Path) -> Path:
    """Make a folder that only its owner can enter (0700), whatever the umask; its parents too. Returns the path."""
    with storage_errors(path):
        for missing in reversed([folder for folder in (path, *path.parents) if not folder.exists()]):
            with suppress(FileExistsError):
                missing.mkdir(mode=0o700)
        path.chmod(0o700)
    return path


def write_atomic(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Replace the file's content as a whole, on disk before the rename. StorageError when the disk refuses."""
    write_atomic_chunks(path, (data,), mode)


def write_atomic_chunks(path: Path, chunks: Iterable[bytes], mode: int = 0o644) -> None:
    """`write_atomic` of a stream. When the stream raises, the destination is untouched and nothing stays beside it."""
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=PARTIAL_PREFIX, dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as partial:
                for chunk in chunks:
                    partial.write(chunk)
                partial.flush()
                os.fchmod(partial.fileno(), mode)
                os.fsync(partial.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def remove_partials(folder: Path) -> int:
    """Remove what killed writers left under a folder, files and folders; returns how many. Hold the folder's lock."""
    partials = [path for path in folder.rglob(f"{PARTIAL_PREFIX}*") if not path.is_symlink()]
    for path in partials:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return len(partials)


def remove_tree(folder: Path) -> None:
    """Remove a folder and all in it, when present; links are removed, never followed."""
    if folder.is_symlink() or not folder.exists():
        folder.unlink(missing_ok=True)
        return
    # renamed first: what is being removed is never taken for complete
    doomed = folder.with_name(f"{PARTIAL_PREFIX}removed-{os.getpid()}-{folder.name}")
    folder.rename(doomed)
    shutil.rmtree(doomed)


def replace_tree(folder: Path, files: Mapping[str, bytes]) -> None:
    """Make a folder hold exactly these files (relative path -> bytes): written beside, then exchanged in one step.

    At every moment the name is the old folder or the new one, whole.
    """
    with storage_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = folder.with_name(f"{PARTIAL_PREFIX}new-{os.getpid()}-{folder.name}")
        remove_tree(fresh)
        try:
            for path, data in sorted(files.items()):
                write_atomic(fresh / path, data)
            if folder.exists():
                _exchange(fresh, folder)
            else:
                fresh.rename(folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)


def _exchange(first: Path, second: Path) -> None:
    # rename(2) cannot replace a folder that is not empty; renameat2(2) exchanges two names atomically
    libc = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(first), os.fsencode(second)
    if libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(second))


def read_bytes_limited(path: Path, limit_bytes: int) -> bytes:
    """A regular file's bytes; HostileInputError when it is larger than the limit or not a regular file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise HostileInputError("not a regular file", where=str(path))
        data = file.read(limit_bytes + 1)
    if len(data) > limit_bytes:
        raise HostileInputError(f"larger than the limit of {limit_bytes} bytes", where=str(path))
    return data


class Lock:
    """An exclusive lock on a file, released when the process ends however it ends. LockedError names the holder.

    The file stays: removing it would let two processes lock two files of one name. Its time of writing is the "since".
    """

    def __init__(self, path: Path, verb: str) -> None:
        self._path, self._verb = path, verb
        self._descriptor: int | None = None

    def __enter__(self) -> Lock:
        with storage_errors(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _describe_holder(descriptor)
            os.close(descriptor)
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            raise LockedError(
                "another run of the pipeline is at work here",
                where=f"{self._path}, held by {holder}",
                remedy="wait for it to end, or stop it, then run the same command again",
            ) from None
        self._descriptor = descriptor
        try:
            self._write_holder(descriptor)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *failure: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _write_holder(self, descriptor: int) -> None:
        holder = {"pid": os.getpid(), "verb": self._verb, "host": platform.node()}
        with storage_errors(self._path):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(holder).encode(), 0)


def _describe_holder(descriptor: int) -> str:
    since = datetime.fromtimestamp(os.fstat(descriptor).st_mtime, UTC).isoformat(timespec="seconds")
    try:
        holder = json.loads(os.pread(descriptor, _MAX_HOLDER_BYTES, 0))
        return f"`{holder['verb']}`, process {holder['pid']} on {holder['host']}, since {since}"
    except (ValueError, KeyError, TypeError):
        return f"a process that has not written its name yet, since {since}"
