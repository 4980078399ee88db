"""Policies and observations -> verdicts. An empty set of policies is refused: it would pass everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Literal

from pipeline.checks.catalogue import check_of, policy_place
from pipeline.checks.observations import ReleaseObservation, Stage
from pipeline.errors import ConfigError
from pipeline.model.finding import Finding
from pipeline.model.record import Record
from pipeline.model.release import Policy, PolicyException

Outcome = Literal["pass", "warn", "excepted", "fail"]


class Verdict(Record):
    """What a policy says of a release. `findings` are all, also those that `exceptions` (the ones used) cover."""

    policy: str
    check: str
    outcome: Outcome
    findings: tuple[Finding, ...]
    exceptions: tuple[PolicyException, ...]

    def describe(self) -> str:
        """The policy, its outcome and its first finding, in one line."""
        errors = [finding for finding in self.findings if finding.severity != "note"]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        return f"{self.policy}: {self.outcome}" + (f": {errors[0].what} at {errors[0].where}{more}" if errors else "")


def evaluate(policies: Sequence[Policy], observation: ReleaseObservation, on: date) -> tuple[Verdict, ...]:
    """A verdict for each policy whose check can run at the observation's stage, in the order of the policies.

    `on` decides which exceptions have expired: the release's date, so that a review years later says the same.
    ConfigError for an empty set, unknown checks and wrong parameters, also of policies that do not run yet.
    """
    check_policies(policies)
    if not observation.images:
        raise ConfigError("policies were asked about no image", remedy="observe every image of the release")
    return tuple(_judge(policy, observation, on) for policy in policies if _runs(policy, observation.stage))


def check_policies(policies: Sequence[Policy]) -> None:
    """Before any work: ConfigError for an empty set, two of one id, an unknown check, or wrong parameters."""
    if not policies:
        raise ConfigError("no policy at all: everything would pass", where="release.yaml", remedy="list policies")
    for index, policy in enumerate(policies):
        if policy.id in [other.id for other in policies[:index]]:
            raise ConfigError(f"two policies are called {policy.id!r}", where=policy_place(policy))
        check_of(policy).load_parameters(policy.parameters, policy_place(policy))


def pending(policies: Sequence[Policy], stage: Stage) -> tuple[str, ...]:
    """Ids of policies whose check cannot run at this stage yet: they have no verdict, which is not a pass."""
    return tuple(policy.id for policy in policies if not _runs(policy, stage))


def _runs(policy: Policy, stage: Stage) -> bool:
    return stage == "verify" or check_of(policy).when == "build"


def _judge(policy: Policy, observation: ReleaseObservation, on: date) -> Verdict:
    check = check_of(policy)
    found = check.run(observation, check.load_parameters(policy.parameters, policy_place(policy)))
    problems = [finding for finding in found if finding.severity != "note"]
    current = {each.digest for each in policy.exceptions if date.fromisoformat(each.expires) >= on}
    left = [finding for finding in problems if finding.digest not in current]
    misused = tuple(_misused(policy, observation, {finding.digest for finding in problems}, on))
    used = tuple(each for each in policy.exceptions if each.digest in {finding.digest for finding in problems})
    return Verdict(
        policy=policy.id,
        check=policy.check,
        outcome=_outcome(policy, bool(left), bool(problems), bool(misused)),
        findings=(*found, *misused),
        exceptions=tuple(each for each in used if each.digest in current),
    )


def _outcome(policy: Policy, left: bool, problems: bool, misused: bool) -> Outcome:
    if misused or (left and policy.severity == "error"):
        return "fail"
    if left:
        return "warn"
    return "excepted" if problems else "pass"


def _misused(policy: Policy, observation: ReleaseObservation, needed: set[str], on: date) -> Iterator[Finding]:
    """Exceptions that have expired, and those that nothing needs.

    Whether one is needed is known at verify, where all images are observed; a build looks at one image at a time.
    """
    for each in policy.exceptions:
        expired = date.fromisoformat(each.expires) < on
        unused = observation.stage == "verify" and each.digest not in needed
        if expired or unused:
            what = f"an exception that expired on {each.expires}" if expired else "an exception that nothing needs"
            yield Finding(
                check=policy.check,
                what=f"{what}; owner {each.owner}: {each.reason}",
                where=f"{policy_place(policy)}: {each.digest}",
                remedy="remove it, or fix what it is for",
                digest=each.digest,
            )
