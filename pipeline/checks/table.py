"""The policies as a table for people: what each says, and what it last said of the release."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from pipeline.checks.catalogue import check_of
from pipeline.checks.evaluate import Verdict
from pipeline.model.release import Policy

_WIDTH = 100
_SHOWN_FINDINGS = 5


def policies_table(policies: Sequence[Policy], verdicts: Sequence[Verdict]) -> str:
    """One line a policy (id, severity, stage, last outcome, statement), its findings and exceptions below it."""
    said = {verdict.policy: verdict for verdict in verdicts}
    widest = max((len(policy.id) for policy in policies), default=6)
    lines = [f"{'policy':{widest}}  severity  runs at  last says  statement"]
    for policy in policies:
        verdict = said.get(policy.id)
        outcome = verdict.outcome if verdict else "not run"
        head = f"{policy.id:{widest}}  {policy.severity:8}  {check_of(policy).when:7}  {outcome:9}  "
        lines += textwrap.wrap(
            policy.statement, _WIDTH, initial_indent=head, subsequent_indent=" " * len(head), break_long_words=False
        )
        lines += [" " * (widest + 2) + line for line in _details(policy, verdict)]
    return "\n".join(lines)


def _details(policy: Policy, verdict: Verdict | None) -> Iterator[str]:
    findings = verdict.findings if verdict else ()
    for finding in findings[:_SHOWN_FINDINGS]:
        yield f"{finding.severity}: {finding.what} at {finding.where}"
    if len(findings) > _SHOWN_FINDINGS:
        yield f"and {len(findings) - _SHOWN_FINDINGS} more findings"
    for each in policy.exceptions:
        yield f"exception until {each.expires} for {each.digest}, owner {each.owner}: {each.reason}"
