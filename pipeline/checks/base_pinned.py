"""The base of every image is pinned by digest, and the image says which it is."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.checks.observations import ImageObservation, ReleaseObservation
from pipeline.errors import ConfigError
from pipeline.model.finding import Finding
from pipeline.model.reference import load_reference
from pipeline.model.release import Section

NAME = "base-pinned"
BASE_DIGEST, BASE_NAME = "org.opencontainers.image.base.digest", "org.opencontainers.image.base.name"


class Parameters(Section):
    """`labels`: whether the image's labels must name the base too."""

    labels: bool


def check(observation: ReleaseObservation, parameters: Parameters) -> tuple[Finding, ...]:
    """A finding for each base that is not pinned, was not the one used, or is not what the labels say."""
    return tuple(finding for image in observation.images for finding in _check_image(image, parameters))


def _check_image(image: ImageObservation, parameters: Parameters) -> Iterator[Finding]:
    try:
        reference = load_reference(image.base_reference, image.name, pinned=True)
    except ConfigError as error:
        yield image.finding(NAME, error.what, remedy=error.remedy)
        return
    if reference.digest != image.base_digest:
        yield image.finding(NAME, f"the base that was used is {image.base_digest}, not {reference.digest}")
    if parameters.labels and image.built:
        runtime = image.config.view.config
        labels = (runtime.labels if runtime else None) or {}
        if labels.get(BASE_DIGEST) != reference.digest:
            yield image.finding(
                NAME, f"the label says {labels.get(BASE_DIGEST)!r}, the base is {reference.digest}", where=BASE_DIGEST
            )
        if not labels.get(BASE_NAME):
            yield image.finding(NAME, "no label names the base", where=BASE_NAME)
