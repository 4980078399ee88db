"""What is the same in every image is one layer with one digest, so that it is stored and pulled once."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from pipeline.checks.observations import ImageObservation, ReleaseObservation
from pipeline.model.finding import Finding
from pipeline.model.release import Section

NAME = "layers-shared"


class Parameters(Section):
    """`layer`: its name in image.yaml, with which its line in an image's history ends."""

    layer: str = Field(min_length=1)


def check(observation: ReleaseObservation, parameters: Parameters) -> tuple[Finding, ...]:
    """A finding for each image whose definition has the layer and which lacks it, and each with another one."""
    found: list[Finding] = []
    first: tuple[str, str] | None = None
    for image in observation.images:
        digests = list(_digests(image, parameters.layer))
        due = image.built and any(layer.name == parameters.layer for layer in image.definition.layers)
        if len(digests) > 1 or (due and not digests):
            found.append(image.finding(NAME, f"{len(digests)} layers are called {parameters.layer!r}; one is due"))
        for digest in digests:
            first = first or (image.id, digest)
            if digest != first[1]:
                found.append(image.finding(NAME, f"is not {first[0]}'s {first[1]}", where=digest))
    return tuple(found)


def _digests(image: ImageObservation, layer_name: str) -> Iterator[str]:
    """Layers of that name. History lines with `empty_layer` have no layer; see the OCI config.md."""
    lines = [line for line in image.config.view.history or () if not line.empty_layer]
    for line, layer in zip(lines, image.manifest.view.layers, strict=False):
        if (line.created_by or "").endswith(f": {layer_name}"):
            yield layer.digest
