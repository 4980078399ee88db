"""Files of the repository as layer entries: content and names alone, never the disk's modes, owners or times."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pipeline.derive.layer import Entry
from pipeline.errors import ConfigError
from pipeline.files import read_bytes_limited
from pipeline.model.release import FileSet

MAX_FILE_BYTES = 16 << 20
LEFT_OUT = ("__pycache__", ".pytest_cache", ".DS_Store")


def read_fileset(folder: Path, files: FileSet) -> tuple[Entry, ...]:
    """Entries of one file or folder under `folder`; ConfigError for anything but plain files and folders."""
    uid, gid = (int(part) for part in files.owner.split(":"))
    mode, directory_mode = int(files.mode, 8), int(files.directory_mode, 8)
    source, top = folder / files.source, files.path.strip("/")
    if not source.is_dir():
        return (Entry(top, "file", read_bytes_limited(source, MAX_FILE_BYTES), mode, uid, gid),)
    entries = [Entry(top, "dir", b"", directory_mode, uid, gid)]
    for path in walk(source):
        name = f"{top}/{path.relative_to(source).as_posix()}"
        if path.is_dir():
            entries.append(Entry(name, "dir", b"", directory_mode, uid, gid))
        else:
            entries.append(Entry(name, "file", read_bytes_limited(path, MAX_FILE_BYTES), mode, uid, gid))
    return tuple(entries)


def walk(folder: Path) -> Iterator[Path]:
    """Every file and folder below, sorted, without caches; ConfigError for a link or a special file."""
    for path in sorted(folder.iterdir()):
        if path.name in LEFT_OUT or path.suffix == ".pyc":
            continue
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise ConfigError("only plain files and folders go into an image", where=str(path))
        yield path
        if path.is_dir():
            yield from walk(path)
