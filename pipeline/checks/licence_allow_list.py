"""Every component's licence is one that the release may ship; what is not known is said, not passed over."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from pipeline.checks.observations import ImageObservation, ReleaseObservation
from pipeline.errors import HostileInputError
from pipeline.model.finding import Finding, Severity
from pipeline.model.release import Section
from pipeline.sbom.licences import refused_keys
from pipeline.sbom.view import SbomComponent, load_sbom

NAME = "licence-allow-list"


Entry = Annotated[str, StringConstraints(pattern=r"^[^*]+\*?$")]


class AcceptedComponent(Section):
    """A component whose licence was read by a person; `component` is its package URL up to the version."""

    component: str
    owner: str
    reason: str


class Parameters(Section):
    """`allow` and `deny` are SPDX ids, licence names, or prefixes that end in `*`; deny wins.

    `other` and `unstated` say what becomes of a licence in neither list, and of a component that states none.
    """

    allow: tuple[Entry, ...] = Field(min_length=1)
    deny: tuple[Entry, ...]
    other: Literal["refuse", "report"]
    unstated: Literal["refuse", "report"]
    accepted: tuple[AcceptedComponent, ...] = ()


def check(observation: ReleaseObservation, parameters: Parameters) -> tuple[Finding, ...]:
    """A finding for each component with a refused licence, and each acceptance that no component needs."""
    found: list[Finding] = []
    used: set[str] = set()
    for image in observation.images:
        found += _check_image(image, parameters, used)
    if observation.stage == "verify":
        unused = [each.component for each in parameters.accepted if each.component not in used]
        found += [
            Finding(check=NAME, what="an acceptance that no component needs", where=name, remedy="remove it")
            for name in unused
        ]
    return tuple(found)


def _check_image(image: ImageObservation, parameters: Parameters, used: set[str]) -> Iterator[Finding]:
    try:
        sbom = load_sbom(image.sbom or b"", image.name)
    except HostileInputError as error:
        yield image.finding(NAME, f"no SBOM to read licences from: {error.what}")
        return
    for component in sbom.components:
        if not component.value("ecosystem"):
            continue
        accepted = _accepted(component, parameters)
        for what, severity in _problems(component, parameters):
            if accepted and severity == "error":
                used.add(accepted)
            else:
                yield image.finding(NAME, what, where=component.ref, severity=severity)


def _accepted(component: SbomComponent, parameters: Parameters) -> str | None:
    name = component.purl.partition("@")[0]
    return next((each.component for each in parameters.accepted if each.component == name), None)


def _problems(component: SbomComponent, parameters: Parameters) -> Iterator[tuple[str, Severity]]:
    if not component.licences:
        yield "states no licence", _severity(parameters.unstated)
    for text in component.licences:
        if denied := refused_keys(text, lambda key: not _listed(key, parameters.deny)):
            yield f"a denied licence: {', '.join(denied)}", "error"
        elif unlisted := refused_keys(text, partial(_allowed, parameters)):
            yield f"a licence in neither list: {', '.join(unlisted)}", _severity(parameters.other)


def _allowed(parameters: Parameters, key: str) -> bool:
    return _listed(key, parameters.allow) and not _listed(key, parameters.deny)


def _severity(rule: Literal["refuse", "report"]) -> Severity:
    return "error" if rule == "refuse" else "note"


def _listed(key: str, entries: tuple[str, ...]) -> bool:
    return any(key == entry or (entry.endswith("*") and key.startswith(entry[:-1])) for entry in entries)
