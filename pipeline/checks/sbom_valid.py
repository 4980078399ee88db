"""Every image has an SBOM that is valid, is about this manifest, and says of everything where it came from."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from pipeline.checks.observations import ImageObservation, ReleaseObservation
from pipeline.errors import HostileInputError
from pipeline.model.digest import hex_of
from pipeline.model.finding import Finding
from pipeline.model.release import Section
from pipeline.sbom.view import Sbom, check_references, check_schema, load_sbom

NAME = "sbom-valid"


class Parameters(Section):
    """`minimum`: packages of each ecosystem (deb, pypi, …) that are due. `max_bytes`: what a log takes."""

    minimum: dict[str, int]
    max_bytes: int = Field(ge=1)


def check(observation: ReleaseObservation, parameters: Parameters) -> tuple[Finding, ...]:
    """A finding for each SBOM that is absent, too long, invalid, about something else, or incomplete."""
    return tuple(finding for image in observation.images for finding in _check_image(image, parameters))


def _check_image(image: ImageObservation, parameters: Parameters) -> Iterator[Finding]:
    if image.sbom is None:
        yield image.finding(NAME, "there is no SBOM")
        return
    if len(image.sbom) > parameters.max_bytes:
        yield image.finding(NAME, f"an SBOM of {len(image.sbom)} bytes; a log takes {parameters.max_bytes}")
    try:
        sbom = load_sbom(image.sbom, image.name)
    except HostileInputError as error:
        yield image.finding(NAME, error.what)
        return
    for each in (*check_schema(image.sbom), *check_references(sbom)):
        yield image.finding(NAME, each.what)
    for what in _problems(image, sbom, parameters):
        yield image.finding(NAME, what)


def _problems(image: ImageObservation, sbom: Sbom, parameters: Parameters) -> Iterator[str]:
    if sbom.subject_sha256 != hex_of(image.manifest.digest):
        yield f"the SBOM is about another manifest: {sbom.subject_sha256 or 'it does not say which'}"
    for ecosystem, minimum in sorted(parameters.minimum.items()):
        found = len(sbom.packages(ecosystem))
        if found < minimum:
            yield f"{found} {ecosystem} packages; at least {minimum} are due"
    layers = {layer.digest for layer in image.manifest.view.layers}
    for each in sbom.components:
        if each.value("ecosystem") and each.value("layer") not in layers:
            yield f"{each.ref} is said to come from a layer that the image does not have"
    incomplete = sorted({each.aggregate for each in sbom.compositions} & {"incomplete"})
    if incomplete:
        yield "the SBOM says itself that it is incomplete: some metadata could not be read"
