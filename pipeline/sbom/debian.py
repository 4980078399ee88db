"""Debian packages from dpkg's database, as dpkg and distroless images leave it. See deb-control(5), dpkg(1)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from debian.deb822 import Deb822, PkgRelation
from packageurl import PackageURL

from pipeline.errors import IntegrityError
from pipeline.sbom.licences import debian_licence
from pipeline.sbom.os_release import OperatingSystem
from pipeline.sbom.package import Inventory, Licence, Package, printable
from pipeline.sbom.rootfs import FoundFile, RootView, Want

STATUS = "var/lib/dpkg/status"
_STATUS_D = re.compile(r"var/lib/dpkg/status\.d/[^/]+(?<!\.md5sums)")
_LISTS = re.compile(r"var/lib/dpkg/(?:info/[^/]+\.(?:md5sums|list)|status\.d/[^/]+\.md5sums)")
_COPYRIGHT = re.compile(r"usr/share/doc/[^/]+/copyright")
_VERSION_FILE = "etc/debian_version"
_OTHER_DATABASES = (
    "lib/apk/db/installed",
    "var/lib/rpm/rpmdb.sqlite",
    "var/lib/rpm/Packages",
    "var/lib/rpm/Packages.db",
)
_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]*")
_SOURCE = re.compile(r"(\S+)(?:\s+\((\S+)\))?")


def want_debian(path: str) -> Want | None:
    """Which files the reader needs, and how."""
    if path == STATUS or _STATUS_D.fullmatch(path) or _COPYRIGHT.fullmatch(path):
        return "content"
    if _LISTS.fullmatch(path) or path == _VERSION_FILE or path in _OTHER_DATABASES:
        return "digest"
    return None


def load_debian(root: RootView, system: OperatingSystem) -> Inventory:
    """Every installed package; IntegrityError when the root has packages but no database that says which."""
    _check_databases(root, system)
    packages: list[Package] = []
    unreadable: list[str] = []
    for file in _databases(root):
        for paragraph in Deb822.iter_paragraphs(file.data.decode("utf-8", "replace").splitlines()):
            if not _installed(paragraph):
                continue
            if _NAME.fullmatch(paragraph.get("Package", "")) and paragraph.get("Version"):
                packages.append(_package(root, system, file, paragraph))
            else:
                unreadable.append(f"{file.path}: {paragraph.get('Package', 'a paragraph without a name')[:80]}")
    return Inventory("deb", tuple(sorted(packages, key=lambda package: package.ref)), tuple(sorted(unreadable)))


def _databases(root: RootView) -> list[FoundFile]:
    return [file for path, file in sorted(root.files.items()) if path == STATUS or _STATUS_D.fullmatch(path)]


def _check_databases(root: RootView, system: OperatingSystem) -> None:
    other = [path for path in _OTHER_DATABASES if path in root.files]
    if other:
        raise IntegrityError(
            "a package database that no reader here knows", where=other[0], remedy="use a Debian or Ubuntu base"
        )
    traces = [path for path in root.files if path == _VERSION_FILE or _LISTS.fullmatch(path)]
    if ({"debian", "ubuntu"} & set(system.family) or traces) and not any(
        b"Package:" in file.data for file in _databases(root)
    ):
        raise IntegrityError(
            f"a Debian root without its package database ({STATUS} or status.d)",
            where=traces[0] if traces else "etc/os-release",
            remedy="keep the database in the image: without it nobody can say what is installed",
        )


def _installed(paragraph: Deb822) -> bool:
    """Whether files are on disk: unpacked and half-configured ones are. Files of status.d have no Status field."""
    status = paragraph.get("Status")
    return status is None or status.split()[-1:] not in ([], ["not-installed"], ["config-files"])


def _package(root: RootView, system: OperatingSystem, file: FoundFile, paragraph: Deb822) -> Package:
    name, version, arch = paragraph["Package"], paragraph["Version"], paragraph.get("Architecture", "")
    qualifiers = {key: value for key, value in (("arch", arch), ("distro", system.distro)) if value}
    sums, brought = _lists(root, file, name, arch)
    copyright_file = root.find(f"usr/share/doc/{name}/copyright")
    evidence = [found for found in (sums, copyright_file) if found is not None]
    return Package(
        ecosystem="deb",
        name=name,
        version=version,
        purl=PackageURL("deb", system.id or "debian", name, version, qualifiers),
        location=file.path,
        layer=brought.layer,
        licence=debian_licence(copyright_file.data) if copyright_file else Licence(),
        evidence=tuple((printable(found.path), found.sha256) for found in evidence),
        requires=tuple(_relations(f"{paragraph.get('Pre-Depends', '')},{paragraph.get('Depends', '')}")),
        provides=tuple(alternative for group in _relations(paragraph.get("Provides", "")) for alternative in group),
        properties=(("source-package", _source(paragraph, name, version)),),
        description=paragraph.get("Description", "").partition("\n")[0][:200],
    )


def _lists(root: RootView, file: FoundFile, name: str, arch: str) -> tuple[FoundFile | None, FoundFile]:
    """The md5sums of a package, and the file whose layer is the package's: status is rewritten by every later layer."""
    stems = [f"var/lib/dpkg/info/{name}:{arch}", f"var/lib/dpkg/info/{name}"]
    if file.path != STATUS:
        stems = [file.path, *stems]
    sums = next((root.files[f"{stem}.md5sums"] for stem in stems if f"{stem}.md5sums" in root.files), None)
    listed = next((root.files[f"{stem}.list"] for stem in stems if f"{stem}.list" in root.files), None)
    return sums, listed or sums or file


def _source(paragraph: Deb822, name: str, version: str) -> str:
    match = _SOURCE.match(paragraph.get("Source", "").strip())
    return f"{match[1]}@{match[2] or version}" if match else f"{name}@{version}"


def _relations(text: str) -> Iterator[tuple[str, ...]]:
    for group in PkgRelation.parse_relations(text.strip().strip(",")) if text.strip(" ,") else []:
        names = tuple(str(alternative["name"]) for alternative in group if alternative.get("name"))
        if names:
            yield names
