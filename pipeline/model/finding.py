"""What a check says: results of behaviour checks, and findings of policies."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from pipeline.model.record import Record

Outcome = Literal["pass", "fail", "error"]
Severity = Literal["error", "warning", "note"]


class CheckResult(Record):
    """One check of a running image. `error` is a check that could not run: never a skip, never green."""

    id: str
    statement: str
    expected: JsonValue
    observed: JsonValue
    outcome: Outcome


class CheckReport(Record):
    """All checks of one image, sorted by id; durations are kept elsewhere, since evidence is byte-identical."""

    image: str
    manifest_digest: str
    results: tuple[CheckResult, ...]

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """Results that are not a pass."""
        return tuple(result for result in self.results if result.outcome != "pass")


class Finding(Record):
    """One thing that a policy's check found wrong. A `note` is reported and fails nothing.

    `digest` is the manifest digest of the image that it is about, empty when it is about the whole release: exceptions
    are granted for one digest.
    """

    check: str
    what: str
    where: str
    remedy: str = ""
    digest: str = ""
    severity: Severity = "error"
