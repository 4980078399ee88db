"""A CycloneDX 1.6 JSON document of one image: the same bytes for the same image and subject, always.

The SBOM describes a manifest and lives outside the image, so it may carry the manifest's digest: serial number and
subject hash come from it. The timestamp is the release's epoch. The library writes the model; compositions, which it
does not write, are added before the canonical bytes are made.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.dependency import Dependency
from cyclonedx.model.tool import ToolRepository
from cyclonedx.output.json import JsonV1Dot6
from packaging.utils import canonicalize_name
from pydantic import JsonValue

from pipeline.model.record import canonical_json
from pipeline.sbom.components import (
    base_components,
    image_component,
    make_property,
    module_components,
    package_component,
    repository_components,
    system_components,
)
from pipeline.sbom.conda import load_conda, want_conda
from pipeline.sbom.debian import load_debian, want_debian
from pipeline.sbom.graph import make_graph
from pipeline.sbom.os_release import PATHS as OS_RELEASE_PATHS
from pipeline.sbom.os_release import load_operating_system
from pipeline.sbom.package import Inventory, Package
from pipeline.sbom.python import load_python, want_python
from pipeline.sbom.rootfs import RootView, Want
from pipeline.sbom.subject import BaseImage, RepositoryUnderRepair, SbomSubject, VendoredModule

# what a caller needs to make one, in one import
__all__ = ["BaseImage", "RepositoryUnderRepair", "SbomSubject", "VendoredModule", "make_sbom", "want"]

FORMAT = 1


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
    image = image_component(subject)
    stated = [*base_components(subject), *repository_components(subject), *module_components(subject)]
    outer = [*stated, *system_components(system, root)]
    parts = outer + [package_component(package, root.layers) for package in packages]
    bom = Bom(
        serial_number=uuid.uuid5(uuid.NAMESPACE_OID, f"sbom {FORMAT} of {subject.manifest_digest}"),
        version=1,
        metadata=BomMetaData(
            timestamp=datetime.fromtimestamp(epoch_s, UTC),
            component=image,
            tools=ToolRepository(components=[_tool()]),
            properties=[make_property("unreadable", path) for each in inventories for path in each.unreadable],
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
