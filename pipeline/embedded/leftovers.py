"""What a killed engine leaves: container processes that go on running, and mounts. Only those of one data folder."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from pipeline.embedded.process import Running, find_program, observe_process

_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    """A line of mountinfo: where, which part of its file system, and the options of that file system."""

    root: str
    point: str
    options: str


def load_mountinfo(text: str) -> tuple[Mount, ...]:
    """Parse /proc/<pid>/mountinfo (proc(5)); spaces and others arrive as octal escapes."""
    mounts = []
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        fields = [_unescape(field) for field in left.split(" ")]
        mounts.append(Mount(fields[3], fields[4], _unescape(right.split(" ")[-1])))
    return tuple(mounts)


def _unescape(text: str) -> str:
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)


def mounts_under(*folders: Path) -> tuple[str, ...]:
    """Mount points of this process's namespace at or below the folders, the deepest first."""
    points = [Path(mount.point) for mount in _read_mounts("self")]
    inside = {str(point) for point in points for folder in folders if point == folder or folder in point.parents}
    return tuple(sorted(inside, key=lambda point: (-point.count("/"), point)))


def unmount_under(*folders: Path) -> None:
    """Unmount them all, lazily, so that a process that still looks at one does not keep it here."""
    for point in mounts_under(*folders):
        subprocess.run([find_program("umount", "mount"), "-l", point], capture_output=True, check=False)


def container_processes(data_path: Path) -> tuple[Running, ...]:
    """Processes whose root file system is a container's of this data folder. Others only see its mounts."""
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]
    observed = (observe_process(pid) for pid in pids if pid != os.getpid() and _has_root_in(pid, data_path))
    return tuple(running for running in observed if running is not None)


def _has_root_in(pid: int, data_path: Path) -> bool:
    roots = [mount for mount in _read_mounts(str(pid)) if mount.point == "/"]
    inside = f"{data_path}/"
    return any(mount.root.startswith(inside) or f"upperdir={inside}" in mount.options for mount in roots)


def _read_mounts(pid: str) -> tuple[Mount, ...]:
    try:
        return load_mountinfo(Path(f"/proc/{pid}/mountinfo").read_text(encoding="utf-8", errors="surrogateescape"))
    except OSError:
        return ()
