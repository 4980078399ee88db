"""What an SBOM is of, as far as the image's own files cannot say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BaseImage:
    """What an image was derived from; `reference` without tag and digest."""

    reference: str
    digest: str


@dataclass(frozen=True)
class RepositoryUnderRepair:
    """The repository in an image: project name, version, full base commit, where it is, and where it came from.

    `pypi` says that name and version are those of a PyPI project; otherwise the package URL is generic.
    """

    name: str
    version: str
    base_commit: str
    path: str
    source: str = ""
    licence: str = ""
    pypi: bool = False


@dataclass(frozen=True)
class VendoredModule:
    """A file of somebody else's that is in the image as it is, and states nothing of itself; `path` is in the image.

    `licence` is an SPDX expression, `sha256` hex, `source` a URI of its repository, `layer` the digest of the layer.
    """

    name: str
    revision: str
    path: str
    source: str
    licence: str
    sha256: str
    layer: str


@dataclass(frozen=True)
class SbomSubject:
    """Which image the SBOM is of, and what its own files cannot say. `licences` is an SPDX expression."""

    image: str
    version: str
    manifest_digest: str
    licences: str
    bases: tuple[BaseImage, ...] = ()
    repository: RepositoryUnderRepair | None = None
    modules: tuple[VendoredModule, ...] = ()
