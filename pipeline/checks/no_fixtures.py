"""No validation fixture is in any layer: a reference answer in reach is a reward for nothing."""

from __future__ import annotations

from pipeline.checks.leaks import LeakParameters, check_leaks
from pipeline.checks.observations import ReleaseObservation
from pipeline.model.finding import Finding

NAME = "no-fixtures"
KINDS = frozenset({"fixture", "unreadable"})


class Parameters(LeakParameters):
    """Of both leak policies."""


def check(observation: ReleaseObservation, parameters: Parameters) -> tuple[Finding, ...]:
    """A finding for each fixture, each unreadable thing that could hide one, and each scan that was not whole."""
    return tuple(finding for image in observation.images for finding in check_leaks(NAME, image, KINDS, parameters))
