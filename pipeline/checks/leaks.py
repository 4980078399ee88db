"""What the two leak policies have in common: which of the scan's findings they refuse, and that the scan was whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from pipeline.checks.observations import ImageObservation, Reach
from pipeline.model.finding import Finding
from pipeline.model.release import Section

_REMEDY = "build again with the strip that takes it out of its layer; a later layer only hides it"


class LeakParameters(Section):
    """`refuse`: classes that fail an image. `pinned_buried`: what buried findings of a pinned image are instead."""

    refuse: Annotated[tuple[Reach, ...], Field(min_length=1)]
    pinned_buried: Literal["refuse", "report"]


def check_leaks(check: str, image: ImageObservation, kinds: frozenset[str], rule: LeakParameters) -> Iterator[Finding]:
    """Findings of `kinds` in one image, and a finding when the scan did not read every layer to its end."""
    scan = image.scan
    if scan is None:
        yield image.finding(check, "the image was not scanned")
        return
    if not scan.complete:
        yield image.finding(check, "the scan did not read everything")
    unread = [layer.digest for layer in image.manifest.view.layers if layer.digest not in scan.layers]
    for digest in unread:
        yield image.finding(check, "the scan did not read this layer", where=digest)
    for leak in scan.findings:
        if leak.kind not in kinds:
            continue
        pinned = not image.built and leak.reach == "buried"
        refused = rule.pinned_buried == "refuse" if pinned else leak.reach in rule.refuse
        yield image.finding(
            check,
            f"{leak.kind}, {leak.reach}",
            where=f"{leak.layer} {leak.path}",
            remedy=_REMEDY if refused else "",
            severity="error" if refused else "note",
        )
