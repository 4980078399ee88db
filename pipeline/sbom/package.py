"""What the readers find: packages of one ecosystem, and what they could not read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from packageurl import PackageURL

Ecosystem = Literal["deb", "pypi", "conda"]


@dataclass(frozen=True)
class Licence:
    """Of a package: an SPDX expression, or names that are not SPDX, or neither where the package does not say."""

    expression: str | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Package:
    """One installed package at one place.

    `location` is where its metadata is, `evidence` the metadata files (path, SHA-256 hex) that it was read from, and
    `requires` groups of alternatives, each a name of the same ecosystem. `layer` is the index of the layer that brought
    it, 0 the lowest.
    """

    ecosystem: Ecosystem
    name: str
    version: str
    purl: PackageURL
    location: str
    layer: int
    licence: Licence = Licence()
    evidence: tuple[tuple[str, str], ...] = ()
    requires: tuple[tuple[str, ...], ...] = ()
    provides: tuple[str, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    archive_sha256: str = ""
    description: str = ""

    @property
    def ref(self) -> str:
        """Unique in an SBOM, since one package may be installed in two places."""
        return f"{self.purl.to_string()}#/{self.location}"


@dataclass(frozen=True)
class Inventory:
    """All packages of one ecosystem, and the metadata that is there but says no name or no version."""

    ecosystem: Ecosystem
    packages: tuple[Package, ...]
    unreadable: tuple[str, ...] = ()


def printable(path: str) -> str:
    """A path as JSON can carry it: bytes that are not UTF-8 become escapes."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
