"""A Debian root out of .deb files: unpacked, merged /usr, no maintainer script ever run, the same bytes each time.

What scripts would have made and a container needs (accounts, a few links and folders) is written here instead.
"""

from __future__ import annotations

import re
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pipeline.derive.layer import Entry
from pipeline.embedded.debian_cuts import drops_path
from pipeline.errors import HostileInputError

AGENT = "arena-agent"
AGENT_ID = 2000
MAX_ENTRIES = 100_000
MAX_UNPACKED_BYTES = 1 << 30
LARGE_BYTES = 256 << 10
_MERGED_FOLDERS = ("bin", "sbin", "lib", "lib64")
_ALIASED = re.compile(rf"(?:{'|'.join(_MERGED_FOLDERS)})(?:/|$)")
_SAFE_FIELD = re.compile(r"[A-Za-z0-9+.:~_-]+")


@dataclass(frozen=True)
class Deb:
    """A verified .deb file and the parts of its control archive that stay in the image."""

    path: Path
    control: bytes
    md5sums: bytes

    def field(self, name: str) -> str:
        """A one-line control field; HostileInputError when it is absent or odd."""
        match = re.search(rf"^{name}:[ \t]*(\S+)[ \t]*$", self.control.decode("utf-8", "replace"), re.MULTILINE)
        if match is None or not _SAFE_FIELD.fullmatch(match[1]):
            raise HostileInputError(f"a .deb without a usable {name} field", where=str(self.path))
        return match[1]

    @property
    def database_name(self) -> str:
        """The stem of its files in /var/lib/dpkg/info."""
        same = re.search(rb"^Multi-Arch:[ \t]*same[ \t]*$", self.control, re.MULTILINE)
        return self.field("Package") + (f":{self.field('Architecture')}" if same else "")


class _Root:
    """The paths of a root while it is put together."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.unpacked_bytes = 0

    def put(self, entry: Entry, where: str) -> None:
        """Add a path of a package; folders may repeat, other paths may not change."""
        before = self.entries.get(entry.path)
        if before is not None and (before.kind, entry.kind) == ("dir", "dir"):
            return
        if before is not None and before != entry:
            raise HostileInputError(f"two packages hold different /{entry.path}", where=where)
        self.unpacked_bytes += len(entry.data)
        if len(self.entries) > MAX_ENTRIES or self.unpacked_bytes > MAX_UNPACKED_BYTES:
            raise HostileInputError("the packages unpack to more than a root may hold", where=where)
        self.entries[entry.path] = entry

    def set(self, entry: Entry) -> None:
        """Add or replace a path that is ours."""
        self.entries[entry.path] = entry


def make_root(deb_paths: list[Path]) -> tuple[Entry, ...]:
    """Unpack verified .deb files (in the order of their names) into the entries of one root file system.

    HostileInputError for a damaged file, a path that leaves the root, or too much of anything.
    """
    root, statuses = _Root(), []
    for path in sorted(deb_paths, key=lambda path: path.name):
        deb = _read_control(path)
        listed = [entry for entry in _files(deb) if not drops_path(entry.path)]
        for entry in listed:
            root.put(entry, str(path))
        statuses.append(_installed(deb.control))
        _write_database(root, deb, [entry.path for entry in listed])
    root.set(Entry("var/lib/dpkg/status", data=b"\n".join(statuses)))
    _write_accounts(root)
    _write_links_and_folders(root)
    _link_copies(root)
    return tuple(root.entries[path] for path in sorted(root.entries))


def _read_control(path: Path) -> Deb:
    members: dict[str, bytes] = {}
    with _dpkg_deb("--ctrl-tarfile", path) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            name = member.name.removeprefix("./")
            if name in ("control", "md5sums") and member.isfile() and member.size <= 8 << 20:
                members[name] = _content(archive, member)
    if "control" not in members:
        raise HostileInputError("a .deb without a control file", where=str(path))
    return Deb(path, members["control"].strip(b"\n") + b"\n", members.get("md5sums", b""))


def _files(deb: Deb) -> Iterator[Entry]:
    with _dpkg_deb("--fsys-tarfile", deb.path) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            path = _merged(member.name, deb)
            if path:
                yield _entry(archive, member, path, deb)


def _entry(archive: tarfile.TarFile, member: tarfile.TarInfo, path: str, deb: Deb) -> Entry:
    mode, uid, gid = member.mode & 0o7777, member.uid, member.gid
    if member.isdir():
        return Entry(path, "dir", mode=mode, uid=uid, gid=gid)
    if member.issym():
        return Entry(path, "symlink", target=member.linkname, uid=uid, gid=gid)
    if member.islnk():
        # A layer of ours has no hard links; an absolute link to the first name serves the same.
        return Entry(path, "symlink", target="/" + _merged(member.linkname, deb), uid=uid, gid=gid)
    if not member.isfile():
        raise HostileInputError(f"a .deb holds a device or pipe: {member.name}", where=str(deb.path))
    if member.size > MAX_UNPACKED_BYTES:
        raise HostileInputError(f"a .deb holds a file of {member.size} bytes: {member.name}", where=str(deb.path))
    return Entry(path, data=_content(archive, member), mode=mode, uid=uid, gid=gid)


def merged_path(name: str) -> str:
    """A path as a package names it, relative, without dot parts, and below usr/ where /usr is merged."""
    path = "/".join(part for part in name.split("/") if part not in ("", "."))
    return f"usr/{path}" if _ALIASED.match(path) else path


def _merged(name: str, deb: Deb) -> str:
    """`merged_path` of a member; empty for the root folder and for the links that merge /usr."""
    if ".." in name.split("/"):
        raise HostileInputError(f"a path leaves the root: {name!r}", where=str(deb.path))
    return "" if name.strip("./") in _MERGED_FOLDERS else merged_path(name)


def _installed(control: bytes) -> bytes:
    first, _, rest = control.partition(b"\n")
    return first + b"\nStatus: install ok installed\n" + rest


def _write_database(root: _Root, deb: Deb, paths: list[str]) -> None:
    kept = set(paths)
    lines = (
        line
        for line in deb.md5sums.splitlines()
        if _merged(line.partition(b"  ")[2].decode("utf-8", "replace"), deb) in kept
    )
    stem = f"var/lib/dpkg/info/{deb.database_name}"
    root.set(Entry(f"{stem}.list", data="".join(f"/{path}\n" for path in [".", *paths]).encode()))
    root.set(Entry(f"{stem}.md5sums", data=b"".join(line + b"\n" for line in lines)))


def _write_accounts(root: _Root) -> None:
    passwd = root.entries["usr/share/base-passwd/passwd.master"].data.replace(b":*:", b":x:")
    group = root.entries["usr/share/base-passwd/group.master"].data.replace(b":*:", b":x:")
    line = f"{AGENT}:x:{AGENT_ID}:{AGENT_ID}:Agent:/home/{AGENT}:/bin/bash\n"
    root.set(Entry("etc/passwd", data=passwd + line.encode()))
    root.set(Entry("etc/group", data=group + f"{AGENT}:x:{AGENT_ID}:\n".encode()))
    root.set(Entry("etc/nsswitch.conf", data=b"passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"))
    root.set(Entry(f"home/{AGENT}", "dir", mode=0o700, uid=AGENT_ID, gid=AGENT_ID))


def _write_links_and_folders(root: _Root) -> None:
    for name in _MERGED_FOLDERS:
        root.set(Entry(name, "symlink", target=f"usr/{name}"))
    root.entries.setdefault("usr/bin/sh", Entry("usr/bin/sh", "symlink", target="dash"))
    root.entries.setdefault("usr/bin/awk", Entry("usr/bin/awk", "symlink", target="mawk"))
    root.set(Entry("var/run", "symlink", target="/run"))
    root.set(Entry("var/lock", "symlink", target="/run/lock"))
    for folder, mode in (
        ("root", 0o700),
        ("tmp", 0o1777),
        ("var/tmp", 0o1777),
        ("run/lock", 0o755),
        ("usr/lib64", 0o755),
    ):
        root.set(Entry(folder, "dir", mode=mode))
    for folder in ("proc", "sys", "dev", "usr/sbin", "opt", "srv", "mnt", "media"):
        root.entries.setdefault(folder, Entry(folder, "dir", mode=0o755))


def _link_copies(root: _Root) -> None:
    """A large file that is there twice (git is) becomes a link to the first path, which saves megabytes."""
    first: dict[tuple[bytes, int, int, int], str] = {}
    for path in sorted(root.entries):
        entry = root.entries[path]
        if entry.kind == "file" and len(entry.data) >= LARGE_BYTES:
            original = first.setdefault((entry.data, entry.mode, entry.uid, entry.gid), path)
            if original != path:
                root.set(Entry(path, "symlink", target=f"/{original}", uid=entry.uid, gid=entry.gid))


class _dpkg_deb:  # noqa: N801 - reads as the command that it is
    """The standard output of `dpkg-deb OPTION FILE`; HostileInputError on leaving when the file is damaged."""

    def __init__(self, option: str, path: Path) -> None:
        self._path = path
        self._process = subprocess.Popen(
            ["dpkg-deb", option, str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def __enter__(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        assert self._process.stdout is not None
        if kind is None:
            self._process.stdout.read()
        self._process.stdout.close()
        status = self._process.wait()
        if kind is not None and not issubclass(kind, tarfile.TarError):
            return
        if kind is not None or status != 0:
            raise HostileInputError(f"a damaged .deb (dpkg-deb ended with {status})", where=str(self._path)) from error


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = archive.extractfile(member)
    return stream.read() if stream is not None else b""
