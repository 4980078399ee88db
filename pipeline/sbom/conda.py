"""Conda packages from `conda-meta/*.json`, one record a package."""

from __future__ import annotations

import json
import re

from packageurl import PackageURL

from pipeline.sbom.licences import python_licence
from pipeline.sbom.package import Inventory, Package, printable
from pipeline.sbom.rootfs import FoundFile, RootView, Want

_RECORD = re.compile(r"(?:.*/)?conda-meta/[^/]+\.json")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def want_conda(path: str) -> Want | None:
    """Which files the reader needs, and how."""
    return "content" if _RECORD.fullmatch(path) else None


def load_conda(root: RootView) -> Inventory:
    """Every conda record, and those that say no name or version."""
    packages: list[Package] = []
    unreadable: list[str] = []
    for path, file in sorted(root.files.items()):
        if _RECORD.fullmatch(path):
            package = _package(file)
            packages += [package] if package else []
            unreadable += [] if package else [printable(path)]
    return Inventory("conda", tuple(packages), tuple(unreadable))


def _package(file: FoundFile) -> Package | None:
    try:
        record = json.loads(file.data)
        name, version = record["name"], record["version"]
        depends = [str(line).split()[0] for line in record.get("depends") or [] if str(line).split()]
        words = {key: str(record.get(key) or "") for key in ("build", "subdir", "license", "sha256")}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if not (isinstance(name, str) and isinstance(version, str) and name and version):
        return None
    return Package(
        ecosystem="conda",
        name=name,
        version=version,
        purl=PackageURL("conda", None, name, version, {key: words[key] for key in ("build", "subdir") if words[key]}),
        location=printable(file.path),
        layer=file.layer,
        licence=python_licence("", words["license"], ()),
        evidence=((printable(file.path), file.sha256),),
        requires=tuple((name,) for name in depends),
        archive_sha256=words["sha256"] if _SHA256.fullmatch(words["sha256"]) else "",
    )
