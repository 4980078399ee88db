"""Exactly one attestation of each kind is on each digest, signed by exactly the identity that the target names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pydantic import Field

from pipeline.checks.observations import ImageObservation, ReleaseObservation
from pipeline.model.finding import Finding
from pipeline.model.release import Section

NAME = "signature-identity"


class Parameters(Section):
    """`predicate_types` that each digest must carry once."""

    predicate_types: tuple[str, ...] = Field(min_length=1)


def check(observation: ReleaseObservation, parameters: Parameters) -> tuple[Finding, ...]:
    """A finding for each kind that is missing, doubled, of another digest, unlogged or signed by somebody else."""
    return tuple(finding for image in observation.images for finding in _check_image(observation, image, parameters))


def _check_image(observation: ReleaseObservation, image: ImageObservation, parameters: Parameters) -> Iterator[Finding]:
    counted = Counter(each.predicate_type for each in image.attested)
    for kind in parameters.predicate_types:
        if counted[kind] != 1:
            yield image.finding(NAME, f"{counted[kind]} attestations of this kind; exactly one is due", where=kind)
    expected = observation.identity
    for each in image.attested:
        if (each.identity, each.issuer) != (expected.subject, expected.issuer):
            what = f"signed by {each.identity} of {each.issuer}, not {expected.subject} of {expected.issuer}"
            yield image.finding(NAME, what, where=each.predicate_type)
        if each.subject_digest != image.manifest.digest:
            yield image.finding(NAME, f"is about {each.subject_digest}", where=each.predicate_type)
        if not each.signed_at:
            yield image.finding(NAME, "has no signed time", where=each.predicate_type)
