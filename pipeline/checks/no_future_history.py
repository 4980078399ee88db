"""No git object that the base commit does not reach is in any layer, nor the same future as plain files."""

from __future__ import annotations

from pipeline.checks.leaks import LeakParameters, check_leaks
from pipeline.checks.observations import ReleaseObservation
from pipeline.model.finding import Finding

NAME = "no-future-history"
KINDS = frozenset({"future", "unreadable"})


class Parameters(LeakParameters):
    """Of both leak policies."""


def check(observation: ReleaseObservation, parameters: Parameters) -> tuple[Finding, ...]:
    """A finding for each piece of the future, each unreadable store, and each scan that was not whole."""
    return tuple(finding for image in observation.images for finding in check_leaks(NAME, image, KINDS, parameters))
