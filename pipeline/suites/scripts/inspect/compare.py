"""Runs as root in a container: what differs between the workspace (argument 1) and its snapshot, as a JSON list.

Independent of the server's own code: content, kind, mode, owner, links, attributes, times and names.
"""

import json
import os
import stat
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

MOST = 10


def differences(top: Path) -> list[str]:
    """Lines of `path: what`, at most MOST."""
    wrong: list[str] = []
    wanted = {"."}
    with tarfile.open("/opt/arena/snapshot.tar") as tar:
        for member in tar:
            name = member.name.removeprefix("./").rstrip("/") or "."
            wanted |= {name, *map(str, Path(name).parents)}
            wrong += [f"{name}: {what}" for what in compare(top / name, member, tar)]
    for folder, folders, files in os.walk(top):
        paths = (os.path.relpath(os.path.join(folder, name), top) for name in folders + files)  # noqa: PTH118 - odd names
        wrong += [f"{path!a}: added" for path in paths if path not in wanted]
    return wrong[:MOST]


def compare(path: Path, member: tarfile.TarInfo, tar: tarfile.TarFile) -> Iterator[str]:
    """What is wrong with one path."""
    try:
        state = path.lstat()
    except OSError:
        yield "missing"
        return
    if (state.st_uid, state.st_gid) != (2000, 2000):
        yield "owner"
    if member.issym():
        if not path.is_symlink() or str(path.readlink()) != member.linkname:
            yield "link"
        return
    if stat.S_ISDIR(state.st_mode) != member.isdir() or stat.S_ISREG(state.st_mode) != member.isreg():
        yield "kind"
        return
    if stat.S_IMODE(state.st_mode) != member.mode:
        yield "mode"
    if any(name.startswith(("user.", "system.")) for name in os.listxattr(path)):
        yield "attributes"
    if member.isreg():
        yield from compare_file(path, state, member, tar)


def compare_file(path: Path, state: os.stat_result, member: tarfile.TarInfo, tar: tarfile.TarFile) -> Iterator[str]:
    """What is wrong with a file's content and inode."""
    if state.st_nlink != 1:
        yield "linked"
    if state.st_mtime != member.mtime:
        yield "time"
    wanted = tar.extractfile(member)
    if wanted is None or path.read_bytes() != wanted.read():
        yield "content"


print(json.dumps(differences(Path(sys.argv[1]))))
