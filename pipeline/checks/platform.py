"""Images are for the one platform that consumers run, in media types that their engines read."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from pipeline.checks.observations import ImageObservation, ReleaseObservation
from pipeline.model.finding import Finding
from pipeline.model.release import Section

NAME = "platform"


class Parameters(Section):
    """Names as in an image config; media types of layers that are allowed."""

    os: str
    architecture: str
    layer_media_types: tuple[str, ...] = Field(min_length=1)


def check(observation: ReleaseObservation, parameters: Parameters) -> tuple[Finding, ...]:
    """A finding for each image of another platform and each layer of another media type."""
    return tuple(finding for image in observation.images for finding in _check_image(image, parameters))


def _check_image(image: ImageObservation, parameters: Parameters) -> Iterator[Finding]:
    config = image.config.view
    if (config.os, config.architecture) != (parameters.os, parameters.architecture):
        expected = f"{parameters.os}/{parameters.architecture}"
        yield image.finding(NAME, f"the image is for {config.os}/{config.architecture}, not {expected}")
    for layer in image.manifest.view.layers:
        if layer.media_type not in parameters.layer_media_types:
            yield image.finding(NAME, f"a layer of media type {layer.media_type!r}", where=layer.digest)
    if image.manifest.view.config.digest != image.config.digest:
        yield image.finding(NAME, "the config is not the one that the manifest names", where=image.config.digest)
