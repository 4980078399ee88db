"""The behaviour suite of the workflow image: every case, the machine as an agent sees it, the wire, the red team.

Nothing of the image is imported. Answers come from independent solvers that run through shell actions, and scores are
compared with a second implementation of the rule. The reading order: workflow_spec, workflow_player, workflow_rule,
workflow_answers, workflow_case, workflow_probes, workflow_protocol, workflow_cheats.
"""

from __future__ import annotations

from pipeline.suites.scenario import Scenario
from pipeline.suites.workflow_case import case_scenario
from pipeline.suites.workflow_cheats import cheat_scenario
from pipeline.suites.workflow_probes import probe_scenario
from pipeline.suites.workflow_protocol import protocol_scenario
from pipeline.suites.workflow_spec import WorkflowSpec


def scenarios(spec: WorkflowSpec) -> tuple[Scenario, ...]:
    """Three scenarios of the image, the long ones, first, so that parallel containers end together; then one a case."""
    following = (*spec.cases[1:], spec.cases[0])
    cases = [case_scenario(spec, case, after) for case, after in zip(spec.cases, following, strict=True)]
    return (cheat_scenario(spec), protocol_scenario(spec), probe_scenario(spec), *cases)
