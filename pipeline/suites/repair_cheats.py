"""The red team of a repair image: ways to score without solving, and what each of them scores.

The published rule grades the workspace as it was left, so some of them score 1 under `guard: none`: that is recorded,
not hidden. Under `guard: planted-hooks` every one scores 0. The cheats are under scripts/cheat.
"""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.suites.repair_spec import Facts, RepairSpec, make_scenario
from pipeline.suites.scenario import Bench, Observation, Scenario
from pipeline.suites.scriptfile import Script, load_scripts
from pipeline.suites.workflow_player import Player


def cheat_scenarios(spec: RepairSpec, groups: int = 3) -> tuple[Scenario, ...]:
    """The red team in some scenarios, so that containers share the work."""
    cheats = load_scripts("cheat")
    return tuple(_scenario(spec, cheats[start::groups]) for start in range(groups))


def expected_reward(spec: RepairSpec, cheat: Script) -> float:
    """What the cheat scores in an image with the task's guard."""
    return 0.0 if spec.guard == "planted-hooks" else cheat.reward or 0.0


def _scenario(spec: RepairSpec, cheats: tuple[Script, ...]) -> Scenario:
    facts: Facts = tuple(
        (cheat.name, f"the cheat by {cheat.text} scores {expected_reward(spec, cheat):g} under guard {spec.guard}",
         expected_reward(spec, cheat))
        for cheat in cheats
    )  # fmt: skip

    def observe(spec: RepairSpec, bench: Bench, player: Player) -> Iterator[Observation]:
        for cheat in cheats:
            yield cheat.name, player.score(spec.task_id, cheat.action(spec.test_paths[0]), must_succeed=False)

    return make_scenario(spec, "cheat", facts, observe)
