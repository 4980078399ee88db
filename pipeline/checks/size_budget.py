"""Images stay below what consumers admit: compressed bytes and number of layers."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from pipeline.checks.observations import ImageObservation, ReleaseObservation
from pipeline.model.finding import Finding
from pipeline.model.release import Section

NAME = "size-budget"


class Parameters(Section):
    """An image is below `compressed_bytes_below` and has at most `layers_max` layers."""

    compressed_bytes_below: int = Field(ge=1)
    layers_max: int = Field(ge=1)


def check(observation: ReleaseObservation, parameters: Parameters) -> tuple[Finding, ...]:
    """A finding for each image over a limit."""
    return tuple(finding for image in observation.images for finding in _check_image(image, parameters))


def _check_image(image: ImageObservation, parameters: Parameters) -> Iterator[Finding]:
    size, limit = image.manifest.compressed_bytes, parameters.compressed_bytes_below
    if size >= limit:
        yield image.finding(NAME, f"{size} compressed bytes; below {limit} is admitted")
    layers = len(image.manifest.view.layers)
    if not 1 <= layers <= parameters.layers_max:
        yield image.finding(NAME, f"{layers} layers; 1 to {parameters.layers_max} are admitted")
