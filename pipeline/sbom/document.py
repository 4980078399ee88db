"""A CycloneDX 1.6 JSON document of one image: the same bytes for the same image and subject, always.

The SBOM describes a manifest and lives outside the image, so it may carry the manifest's digest: serial number and
subject hash come from it. The timestamp is the release's epoch. The library writes the model; compositions, which it
does not write, are added before the canonical bytes are made.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.dependency import Dependency
from cyclonedx.model.license import DisjunctiveLicense, LicenseExpression
from cyclonedx.model.tool import ToolRepository
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.spdx import is_supported_id
from packageurl import PackageURL
from packaging.utils import canonicalize_name
from pydantic import JsonValue

from pipeline.model.digest import hex_of
from pipeline.model.record import canonical_json
from pipeline.sbom.conda import load_conda, want_conda
from pipeline.sbom.debian import load_debian, want_debian
from pipeline.sbom.graph import make_graph
from pipeline.sbom.licences import python_licence
from pipeline.sbom.os_release import PATHS as OS_RELEASE_PATHS
from pipeline.sbom.os_release import OperatingSystem, load_operating_system
from pipeline.sbom.package import Inventory, Licence, Package
from pipeline.sbom.python import load_python, want_python
from pipeline.sbom.rootfs import RootView, Want

FORMAT = 1
PREFIX = "pipeline:"
IMAGE_REF, SYSTEM_REF, REPOSITORY_REF = "image", "operating-system", "repository"


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
class SbomSubject:
    """Which image the SBOM is of, and what its own files cannot say. `licences` is an SPDX expression."""

    image: str
    version: str
    manifest_digest: str
    licences: str
    bases: tuple[BaseImage, ...] = ()
    repository: RepositoryUnderRepair | None = None


def want(path: str) -> Want | None:
    """Which files of an image `make_sbom` needs: the `wanted` of `read_root`."""
    if path in OS_RELEASE_PATHS:
        return "content"
    return want_debian(path) or want_python(path) or want_conda(path)


def make_sbom(root: RootView, subject: SbomSubject, epoch_s: int) -> bytes:
    """Canonical JSON bytes. IntegrityError when a package database is missing, HostileInputError for broken limits."""
    system = load_operating_system(root)
    inventories = (load_debian(root, system), _installed_python(root, subject), load_conda(root))
    packages = [package for inventory in inventories for package in inventory.packages]
    image = _image(subject)
    outer = [*_bases(subject), *_repository(subject), *_operating_system(system, root)]
    parts = outer + [_component(package, root.layers) for package in packages]
    bom = Bom(
        serial_number=uuid.uuid5(uuid.NAMESPACE_OID, f"sbom {FORMAT} of {subject.manifest_digest}"),
        version=1,
        metadata=BomMetaData(
            timestamp=datetime.fromtimestamp(epoch_s, UTC),
            component=image,
            tools=ToolRepository(components=[_tool()]),
            properties=[_property("unreadable", path) for each in inventories for path in each.unreadable],
        ),
        components=parts,
        dependencies=_dependencies(image, parts, packages),
    )
    document = json.loads(JsonV1Dot6(bom).output_as_string())
    document["compositions"] = [*_outer_composition(outer), *_compositions(inventories, root.layers)]
    return canonical_json(document)


def _installed_python(root: RootView, subject: SbomSubject) -> Inventory:
    """Python distributions without the repository's own egg-info: that is the repository, which has a component."""
    found, repository = load_python(root), subject.repository
    if repository is None:
        return found
    place, name = repository.path.strip("/") + "/", canonicalize_name(repository.name)
    kept = [
        package
        for package in found.packages
        if not (package.location.startswith(place) and package.location.endswith(".egg-info"))
        or canonicalize_name(package.name) != name
    ]
    return replace(found, packages=tuple(kept))


def _tool() -> Component:
    return Component(name="pipeline", type=ComponentType.APPLICATION, version=f"sbom-{FORMAT}", bom_ref="tool")


def _image(subject: SbomSubject) -> Component:
    return Component(
        name=subject.image,
        type=ComponentType.CONTAINER,
        version=subject.version,
        bom_ref=IMAGE_REF,
        hashes=[_sha256(subject.manifest_digest)],
        licenses=_licences(python_licence(subject.licences, "", ())),
        purl=PackageURL("oci", None, subject.image, subject.manifest_digest),
    )


def _bases(subject: SbomSubject) -> Iterator[Component]:
    for base in subject.bases:
        name = base.reference.rpartition("/")[2].lower()
        yield Component(
            name=base.reference,
            type=ComponentType.CONTAINER,
            version=base.digest,
            bom_ref=f"base/{base.reference}@{base.digest}",
            hashes=[_sha256(base.digest)],
            purl=PackageURL("oci", None, name, base.digest, {"repository_url": base.reference}),
        )


def _repository(subject: SbomSubject) -> Iterator[Component]:
    repository = subject.repository
    if repository is None:
        return
    qualifiers = {"vcs_url": f"git+{repository.source}@{repository.base_commit}"} if repository.source else {}
    yield Component(
        name=repository.name,
        type=ComponentType.APPLICATION,
        version=repository.version,
        bom_ref=REPOSITORY_REF,
        licenses=_licences(python_licence(repository.licence, "", ())),
        purl=PackageURL(
            "pypi" if repository.pypi else "generic", None, repository.name.lower(), repository.version, qualifiers
        ),
        properties=[_property("base-commit", repository.base_commit), _property("location", repository.path)],
    )


def _operating_system(system: OperatingSystem, root: RootView) -> Iterator[Component]:
    if system.id:
        yield Component(
            name=system.id,
            type=ComponentType.OPERATING_SYSTEM,
            version=system.version_id or None,
            description=system.pretty_name or None,
            bom_ref=SYSTEM_REF,
            properties=[_property("layer", root.layers[system.layer])],
        )


def _component(package: Package, layers: Sequence[str]) -> Component:
    own = [("ecosystem", package.ecosystem), ("location", f"/{package.location}"), ("layer", layers[package.layer])]
    return Component(
        name=package.name,
        type=ComponentType.LIBRARY,
        version=package.version,
        bom_ref=package.ref,
        description=package.description or None,
        hashes=[_sha256(f"sha256:{package.archive_sha256}")] if package.archive_sha256 else [],
        licenses=_licences(package.licence),
        purl=package.purl,
        properties=[_property(name, value) for name, value in (*own, *package.properties, *_evidence(package))],
    )


def _evidence(package: Package) -> Iterator[tuple[str, str]]:
    """The metadata files that speak for a package; md5sums and RECORD files in turn hash every file of it.

    As properties: the schema's external references are IRIs, and checking a thousand of those takes half a minute.
    """
    for path, sha256 in package.evidence:
        yield "evidence", f"sha256:{sha256} /{path}"


def _licences(licence: Licence) -> list[DisjunctiveLicense | LicenseExpression]:
    if licence.expression is None:
        return [DisjunctiveLicense(name=name) for name in licence.names]
    if is_supported_id(licence.expression):
        return [DisjunctiveLicense(id=licence.expression)]
    return [LicenseExpression(licence.expression)]


def _sha256(digest: str) -> HashType:
    return HashType(alg=HashAlgorithm.SHA_256, content=hex_of(digest))


def _property(name: str, value: str) -> Property:
    return Property(name=PREFIX + name, value=value)


def _dependencies(image: Component, parts: Sequence[Component], packages: Sequence[Package]) -> list[Dependency]:
    """The image holds everything; a package needs what its metadata says, as far as it is there."""
    by_ref = {str(part.bom_ref.value): part.bom_ref for part in parts}
    graph = make_graph(packages)
    edges = [
        Dependency(part.bom_ref, [Dependency(by_ref[ref]) for ref in graph.get(str(part.bom_ref.value), ())])
        for part in parts
    ]
    return [Dependency(image.bom_ref, [Dependency(part.bom_ref) for part in parts]), *edges]


def _outer_composition(outer: Sequence[Component]) -> Iterator[JsonValue]:
    """What the release states rather than reads: nothing says that no other base or repository exists."""
    if outer:
        yield {
            "bom-ref": "composition/stated",
            "aggregate": "unknown",
            "assemblies": list[JsonValue](sorted(str(part.bom_ref.value) for part in outer)),
        }


def _compositions(inventories: Iterable[Inventory], layers: Sequence[str]) -> Iterator[JsonValue]:
    """One statement of completeness an ecosystem and layer; an ecosystem with unreadable metadata is not complete."""
    for inventory in inventories:
        aggregate = "incomplete" if inventory.unreadable else "complete"
        for index, digest in enumerate(layers):
            refs = [package.ref for package in inventory.packages if package.layer == index]
            if refs:
                yield {
                    "bom-ref": f"composition/{inventory.ecosystem}/{index}/{digest}",
                    "aggregate": aggregate,
                    "assemblies": list[JsonValue](sorted(refs)),
                }
