"""The one summary that a verb prints at its end: a line an image, then where things are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class SummaryLine:
    """One image; sizes in bytes. `checks` is text such as `657 passed`."""

    image: str
    digest: str
    compressed_bytes: int
    added_bytes: int
    checks: str
    note: str = ""


def render_summary(verb: str, lines: Sequence[SummaryLine], elapsed_s: float, places: Sequence[str]) -> str:
    """A table that fits a terminal of 120 columns."""
    width = max((len(line.image) for line in lines), default=5)
    header = f"{'image':{width}}  {'digest':19}  {'compressed':>12}  {'added':>11}  checks"
    rows = [
        f"{line.image:{width}}  {line.digest[:19]}  {line.compressed_bytes:>12,}  {line.added_bytes:>11,}  "
        f"{line.checks}{'  ' + line.note if line.note else ''}"
        for line in lines
    ]
    return "\n".join(["", header, *rows, "", f"{verb} took {elapsed_s:.1f} s", *places])
