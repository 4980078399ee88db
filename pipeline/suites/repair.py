"""The behaviour suite of a repair image: the image, the wire, what an agent sees and leaves, grading, the red team.

Nothing of the image is imported; what is compared is read by independent code. The reading order: repair_spec,
repair_identity, repair_protocol, repair_isolation, repair_output, repair_reset, repair_grading, repair_cheats,
repair_endurance.
"""

from __future__ import annotations

from pipeline.suites.repair_cheats import cheat_scenarios
from pipeline.suites.repair_endurance import endurance_scenario
from pipeline.suites.repair_grading import grading_scenario
from pipeline.suites.repair_identity import identity_scenario
from pipeline.suites.repair_isolation import hiding_scenario, view_scenario
from pipeline.suites.repair_output import endless_scenario, output_scenario
from pipeline.suites.repair_protocol import frames_scenario, sessions_scenario
from pipeline.suites.repair_reset import reset_scenario, traces_scenario
from pipeline.suites.repair_spec import RepairSpec
from pipeline.suites.scenario import Scenario

__all__ = ["RepairSpec", "scenarios"]


def scenarios(task: RepairSpec) -> tuple[Scenario, ...]:
    """All scenarios, the long ones first, so that parallel containers end together."""
    return (
        endless_scenario(task),
        endurance_scenario(task),
        grading_scenario(task),
        *cheat_scenarios(task),
        reset_scenario(task),
        hiding_scenario(task),
        sessions_scenario(task),
        output_scenario(task),
        traces_scenario(task),
        frames_scenario(task),
        view_scenario(task),
        identity_scenario(task),
    )
