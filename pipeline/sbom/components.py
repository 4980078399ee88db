"""CycloneDX components of an image: itself, its bases, the repository, the operating system, and each package."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense, LicenseExpression
from cyclonedx.spdx import is_supported_id
from packageurl import PackageURL

from pipeline.model.digest import hex_of
from pipeline.sbom.licences import python_licence
from pipeline.sbom.os_release import OperatingSystem
from pipeline.sbom.package import Licence, Package
from pipeline.sbom.rootfs import RootView
from pipeline.sbom.subject import SbomSubject

PREFIX = "pipeline:"
IMAGE_REF, SYSTEM_REF, REPOSITORY_REF = "image", "operating-system", "repository"


def image_component(subject: SbomSubject) -> Component:
    return Component(
        name=subject.image,
        type=ComponentType.CONTAINER,
        version=subject.version,
        bom_ref=IMAGE_REF,
        hashes=[_sha256(subject.manifest_digest)],
        licenses=_licences(python_licence(subject.licences, "", ())),
        purl=PackageURL("oci", None, subject.image, subject.manifest_digest),
    )


def base_components(subject: SbomSubject) -> Iterator[Component]:
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


def repository_components(subject: SbomSubject) -> Iterator[Component]:
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
        properties=[make_property("base-commit", repository.base_commit), make_property("location", repository.path)],
    )


def module_components(subject: SbomSubject) -> Iterator[Component]:
    for module in subject.modules:
        facts = {"ecosystem": "vendored", "location": f"/{module.path}", "layer": module.layer}
        yield Component(
            name=module.name,
            type=ComponentType.FILE,
            version=module.revision,
            bom_ref=f"vendored/{module.path}",
            hashes=[_sha256(f"sha256:{module.sha256}")],
            licenses=_licences(python_licence(module.licence, "", ())),
            purl=PackageURL("generic", None, module.name, module.revision, {"vcs_url": module.source}),
            properties=[make_property(name, value) for name, value in facts.items()],
        )


def system_components(system: OperatingSystem, root: RootView) -> Iterator[Component]:
    if system.id:
        yield Component(
            name=system.id,
            type=ComponentType.OPERATING_SYSTEM,
            version=system.version_id or None,
            description=system.pretty_name or None,
            bom_ref=SYSTEM_REF,
            properties=[make_property("layer", root.layers[system.layer])],
        )


def package_component(package: Package, layers: Sequence[str]) -> Component:
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
        properties=[make_property(name, value) for name, value in (*own, *package.properties, *_evidence(package))],
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


def make_property(name: str, value: str) -> Property:
    return Property(name=PREFIX + name, value=value)
