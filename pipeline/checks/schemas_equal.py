"""All images of a release serve the same JSON schemas, and those are the ones that consumers were given."""

from __future__ import annotations

from pydantic import Field

from pipeline.checks.observations import ReleaseObservation
from pipeline.model.digest import Digest
from pipeline.model.finding import Finding
from pipeline.model.release import Section

NAME = "schemas-equal"


class Parameters(Section):
    """`expected`: digest of the canonical JSON of each document in policies/openenv-schema.json."""

    expected: dict[str, Digest] = Field(min_length=1)


def check(observation: ReleaseObservation, parameters: Parameters) -> tuple[Finding, ...]:
    """A finding for each image whose /schema differs from the expected one or from the first image's."""
    found: list[Finding] = []
    first = observation.images[0] if observation.images else None
    for image in observation.images:
        if not image.schemas:
            found.append(image.finding(NAME, "nobody saw what /schema serves"))
            continue
        for name, digest in sorted(parameters.expected.items()):
            if image.schemas.get(name) != digest:
                what = f"{image.schemas.get(name, 'absent')}, not the published {digest}"
                found.append(image.finding(NAME, what, where=f"/schema {name}"))
        if first is not None and first.schemas and image.schemas != first.schemas:
            names = sorted(dict(image.schemas.items() ^ first.schemas.items()))
            found.append(image.finding(NAME, f"differs from {first.id}", where=f"/schema {', '.join(names)}"))
    return tuple(found)
