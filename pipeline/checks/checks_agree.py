"""The behavioural checks after the anonymous pull are those before publication, and every one says the same."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.checks.observations import ImageObservation, ReleaseObservation
from pipeline.model.finding import CheckReport, Finding
from pipeline.model.release import Section

NAME = "checks-agree"
_REMEDY = "look at both check reports in the evidence; a check that depends on the machine is not a check"


class Parameters(Section):
    """`minimum`: how many checks an image of each suite has at least."""

    minimum: dict[str, int]


def check(observation: ReleaseObservation, parameters: Parameters) -> tuple[Finding, ...]:
    """A finding for each report that is absent, foreign or short, and each check that fails or disagrees."""
    return tuple(finding for image in observation.images for finding in _check_image(image, parameters))


def _check_image(image: ImageObservation, parameters: Parameters) -> Iterator[Finding]:
    if image.before is None or image.after is None:
        missing = "before publication" if image.before is None else "after the pull"
        yield image.finding(NAME, f"there is no check report from {missing}")
        return
    for moment, report in (("before publication", image.before), ("after the pull", image.after)):
        yield from _check_report(image, moment, report, parameters)
    before = {result.id: result for result in image.before.results}
    after = {result.id: result for result in image.after.results}
    for name in sorted(before.keys() ^ after.keys()):
        yield image.finding(NAME, "a check ran only once", where=name, remedy=_REMEDY)
    for name in sorted(before.keys() & after.keys()):
        if before[name] != after[name]:
            what = f"before: {before[name].outcome}, after: {after[name].outcome}, with other values"
            yield image.finding(NAME, what, where=name, remedy=_REMEDY)


def _check_report(
    image: ImageObservation, moment: str, report: CheckReport, parameters: Parameters
) -> Iterator[Finding]:
    if report.manifest_digest != image.manifest.digest:
        yield image.finding(NAME, f"the report from {moment} is about {report.manifest_digest}")
    suite = image.definition.suite
    minimum = parameters.minimum.get(suite)
    if minimum is None:
        yield image.finding(NAME, f"the policy has no minimum for the suite {suite!r}")
    elif len(report.results) < minimum:
        yield image.finding(NAME, f"{len(report.results)} checks {moment}; at least {minimum} are due")
    if len({result.id for result in report.results}) != len(report.results):
        yield image.finding(NAME, f"two checks {moment} have one id")
    for result in report.failed:
        yield image.finding(NAME, f"{result.outcome} {moment}: {result.statement}", where=result.id)
