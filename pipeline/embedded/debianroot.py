"""The Debian root of an image: resolved once per cache folder, fetched, and as a layer with bytecode.

A resolution is kept, so that one working tree builds the same root until its cache is removed; what was resolved is in
the materials. Mirrors drop old versions at each point release, which is why packages are recorded and not locked.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from pipeline.derive.layer import Entry
from pipeline.embedded.apt import Apt, ResolvedDeb
from pipeline.embedded.aptsources import load_mirror
from pipeline.embedded.bytecode import ImagePython, make_bytecode
from pipeline.embedded.debian import make_root, merged_path
from pipeline.embedded.debian_cuts import DROPPED_PACKAGES, drops_package
from pipeline.embedded.filecache import FileCache, sha256_of
from pipeline.embedded.layercache import Content
from pipeline.errors import StageError
from pipeline.files import write_atomic
from pipeline.model.material import Material
from pipeline.model.record import Record, canonical_json
from pipeline.model.release import Debian

PYTHON_VERSIONS = {"bookworm": "3.11", "trixie": "3.13"}
# What the interpreter needs to run from the cache.
_PYTHON_PATHS = ("usr/bin/python3", "usr/lib/python3", "usr/lib/x86_64-linux-gnu/", "usr/lib64/")


class Package(Record):
    """A resolved and fetched .deb."""

    name: str
    version: str
    architecture: str
    file_name: str
    sha256: str


class Resolution(Record):
    """Every package of a root, sorted by name."""

    suite: str
    packages: tuple[Package, ...]


@dataclass(frozen=True)
class DebianRoot:
    """A resolved root whose .deb files are in the cache."""

    resolution: Resolution
    cache_path: Path

    @property
    def python_version(self) -> str:
        """Of the suite, like 3.11."""
        return PYTHON_VERSIONS[self.resolution.suite]

    @property
    def inputs(self) -> list[str]:
        """What its bytes depend on: the SHA-256 of each .deb."""
        return [package.sha256 for package in self.resolution.packages]

    @property
    def materials(self) -> tuple[Material, ...]:
        """One a package."""
        return tuple(_material(package, self.resolution.suite) for package in self.resolution.packages)

    def make_content(self) -> Content:
        """Its entries with bytecode; unpacks every .deb."""
        entries = self._entries()
        bytecode = make_bytecode(self._unpacked_python(entries), _library_of(entries))
        return Content((*entries, *bytecode.entries), self.materials, bytecode.notes)

    def python(self) -> ImagePython:
        """Its interpreter, unpacked in the cache; unpacks the .deb files when it is not there yet."""
        path = self._python_path()
        return ImagePython(path, self.python_version) if path.is_dir() else self._unpacked_python(self._entries())

    def _entries(self) -> tuple[Entry, ...]:
        cache = _files(self.cache_path)
        with cache.scratch() as folder:
            paths = []
            for package in self.resolution.packages:
                paths.append(Path(folder, package.file_name))
                paths[-1].write_bytes(cache.read(package.sha256))
            return make_root(paths)

    def _python_path(self) -> Path:
        key = hashlib.sha256(canonical_json([*self.inputs])).hexdigest()
        return self.cache_path / "python" / key[:32]

    def _unpacked_python(self, entries: tuple[Entry, ...]) -> ImagePython:
        path = self._python_path()
        if not path.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            with _files(self.cache_path).scratch() as folder:
                _write_tree([entry for entry in entries if entry.path.startswith(_PYTHON_PATHS)], Path(folder, "root"))
                Path(folder, "root").rename(path)
        return ImagePython(path, self.python_version)


def fetch_root(debian: Debian, mirror: str | None, cache_path: Path) -> DebianRoot:
    """Resolve and fetch the packages of a root, or find both in the cache (then no network is used).

    `mirror` is a Debian mirror's URL, or None for the machine's own. ServiceError when apt-get fails.
    """
    packages = [*debian.packages]
    key = hashlib.sha256(canonical_json([debian.suite, *packages, *sorted(DROPPED_PACKAGES)])).hexdigest()
    record_path, cache = cache_path / "debian" / f"{key}.json", _files(cache_path)
    resolution = _load(record_path)
    if resolution is None or not all(cache.has(package.sha256) for package in resolution.packages):
        resolution = _resolve(debian, mirror, cache_path)
        write_atomic(record_path, resolution.to_bytes())
    return DebianRoot(resolution, cache_path)


def _load(path: Path) -> Resolution | None:
    try:
        return Resolution.load(path.read_bytes(), str(path)) if path.is_file() else None
    except StageError:
        return None


def _resolve(debian: Debian, mirror: str | None, cache_path: Path) -> Resolution:
    apt = Apt(cache_path.absolute() / "apt" / debian.suite, debian.suite, load_mirror(mirror))
    apt.update()
    kept = [deb for deb in apt.resolve(debian.packages) if not drops_package(deb.name)]
    with _files(cache_path).scratch() as folder:
        paths = apt.download(kept, Path(folder))
        packages = [_keep(deb, path, _files(cache_path)) for deb, path in zip(kept, paths, strict=True)]
    return Resolution(suite=debian.suite, packages=tuple(packages))


def _keep(deb: ResolvedDeb, path: Path, cache: FileCache) -> Package:
    # apt-get has checked the file against the signed index; from here on its SHA-256 stands for that.
    sha256 = sha256_of(path)
    cache.add(path, sha256)
    return Package(
        name=deb.name, version=deb.version, architecture=deb.architecture, file_name=deb.file_name, sha256=sha256
    )


def _material(package: Package, suite: str) -> Material:
    uri = f"pkg:deb/debian/{package.name}@{package.version}?arch={package.architecture}&distro={suite}"
    return Material(
        uri=uri,
        name=package.name,
        version=package.version,
        kind="debian-package",
        digests={"sha256": package.sha256},
        file_name=package.file_name,
    )


def _files(cache_path: Path) -> FileCache:
    return FileCache(cache_path / "files")


def _library_of(entries: tuple[Entry, ...]) -> list[Entry]:
    return [entry for entry in entries if entry.path.startswith("usr/lib/python3")]


def _write_tree(entries: list[Entry], root_path: Path) -> None:
    for entry in entries:
        path = root_path / entry.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if entry.kind == "dir":
            path.mkdir(exist_ok=True)
        elif entry.kind == "symlink":
            path.symlink_to(_inside(entry))
        else:
            path.write_bytes(entry.data)
            path.chmod(entry.mode & 0o755)


def _inside(link: Entry) -> str:
    """The target of a link as a relative path, so that in the cache it leads into the same root."""
    if not link.target.startswith("/"):
        return link.target
    return "../" * link.path.count("/") + merged_path(link.target)
