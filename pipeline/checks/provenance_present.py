"""Every image says what it was built from, by whom and how; once published, in a signed attestation too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import Field, JsonValue

from pipeline.checks.observations import ImageObservation, ReleaseObservation
from pipeline.model.finding import Finding
from pipeline.model.release import Section

NAME = "provenance-present"


class Parameters(Section):
    """`predicate_type` of the attestation; `build_types` that are ours, matched whole; how few inputs are too few."""

    predicate_type: str
    build_types: tuple[str, ...] = Field(min_length=1)
    minimum_dependencies: int = Field(ge=1)


def check(observation: ReleaseObservation, parameters: Parameters) -> tuple[Finding, ...]:
    """A finding for provenance that is absent, incomplete, without digests, or not what was attested."""
    return tuple(finding for image in observation.images for finding in _check_image(observation, image, parameters))


def _check_image(observation: ReleaseObservation, image: ImageObservation, parameters: Parameters) -> Iterator[Finding]:
    if image.provenance is None:
        yield image.finding(NAME, "there is no provenance")
        return
    yield from _check_predicate(image, image.provenance, parameters)
    if observation.stage == "verify":
        attested = [each for each in image.attested if each.predicate_type == parameters.predicate_type]
        if len(attested) != 1:
            yield image.finding(NAME, f"{len(attested)} provenance attestations; exactly one is due")
        elif attested[0].predicate != image.provenance:
            yield image.finding(NAME, "the attested provenance is not the one that the build wrote")


def _check_predicate(
    image: ImageObservation, predicate: Mapping[str, JsonValue], parameters: Parameters
) -> Iterator[Finding]:
    """Fields of https://slsa.dev/spec/v1.0/provenance#schema."""
    definition, details = _mapping(predicate.get("buildDefinition")), _mapping(predicate.get("runDetails"))
    if definition.get("buildType") not in parameters.build_types:
        yield image.finding(NAME, f"unknown build type {definition.get('buildType')!r}", where="buildType")
    if not _mapping(details.get("builder")).get("id"):
        yield image.finding(NAME, "the provenance names no builder", where="runDetails.builder.id")
    if not definition.get("externalParameters"):
        yield image.finding(NAME, "the provenance has no external parameters", where="externalParameters")
    listed = definition.get("resolvedDependencies")
    dependencies = [_mapping(each) for each in listed] if isinstance(listed, list) else []
    if len(dependencies) < parameters.minimum_dependencies:
        yield image.finding(NAME, f"{len(dependencies)} resolved dependencies", where="resolvedDependencies")
    for each in dependencies:
        if not each.get("digest"):
            place = str(each.get("uri") or each.get("name"))
            yield image.finding(NAME, "a dependency without a digest", where=place[:200])


def _mapping(value: JsonValue) -> Mapping[str, JsonValue]:
    return value if isinstance(value, dict) else {}
