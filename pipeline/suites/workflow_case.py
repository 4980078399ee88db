"""One scenario a case: what reset gives, every answer variant with its exact score, the last action, isolation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue

from pipeline.suites.scenario import Bench, Observation, Scenario, Statement
from pipeline.suites.workflow_answers import Right, variants
from pipeline.suites.workflow_player import Player, dump, write_file
from pipeline.suites.workflow_spec import WorkflowCase, WorkflowSpec, load_answer

_PLACES = '. /tmp /var/tmp /dev/shm "$HOME"'
_LEFT = f"for d in {_PLACES}; do echo left > $d/left-behind; mkdir -p $d/.left-behind; done; chmod 700 ."
_FIND_LEFT = f'find {_PLACES} -name "*left-behind" 2>/dev/null | wc -l; stat -c %a .'
_LIST = "stat -c '%n %F %u:%g' -- * .[!.]* 2>/dev/null"
_DIGEST = "cat -- *.json INSTRUCTIONS.md | sha256sum"


def case_scenario(spec: WorkflowSpec, case: WorkflowCase, neighbour: WorkflowCase) -> Scenario:
    """`neighbour` is another case, reset to in between to see that nothing is carried over."""

    def run(bench: Bench) -> Iterator[Observation]:
        player = Player(bench, spec.reset_s, spec.grading_s)
        try:
            yield from _run(spec, case, neighbour, player)
        finally:
            player.close()

    return Scenario(f"workflow.{case.id}", _statements(spec, case), run)


def _statements(spec: WorkflowSpec, case: WorkflowCase) -> tuple[Statement, ...]:
    begun = {"done": False, "exit_code": None, "kind": "observation", "reward": 0, "task_id": case.id}
    listing = {"instructions": 1, "json": 3, "others": 0, "owners": ["2000:2000"], "regular": True}
    solved = {"components": case.components, "exit_code": 0}
    clean = ["0\n755\n", "0\n755\n"]
    last = {"cached": True, "done": [False] * (spec.max_actions - 1) + [True], "output": "last\n", "reward": 1}
    facts: tuple[tuple[str, str, Any], ...] = (
        ("reset", "reset answers with the task id, no reward and not done", begun),
        ("workspace", "reset leaves INSTRUCTIONS.md and three JSON files, owned by the agent", listing),
        ("instructions", "the observation is INSTRUCTIONS.md and names each input file", {"named": 3, "same": True}),
        ("solvable", "the independent solver answers with the documented components", solved),
        ("seeds", "reset seeds never change the inputs", 1),
        ("last-action", "the last shell action runs, then the answer is graded", last),
        ("cached", "a terminal reply never changes until the next reset", {"identical": True, "reward": 0}),
        ("isolation", "after a reset, to this or another case, nothing of the last episode is left", clean),
    )
    scores = [(variant.name, variant.text, variant.score(case)) for variant in variants(case)]
    return tuple(Statement(f"workflow.{case.id}.{name}", text, value) for name, text, value in (*facts, *scores))


def _run(spec: WorkflowSpec, case: WorkflowCase, neighbour: WorkflowCase, player: Player) -> Iterator[Observation]:
    here = f"workflow.{case.id}."
    for name, observed in _begin(case, player):
        yield here + name, observed
    right, solvable = _solve(spec, case, player)
    yield here + "solvable", solvable
    for variant in variants(case):
        yield here + variant.name, player.score(case.id, variant.command(right))
    yield here + "seeds", len({_inputs(player, case, seed) for seed in (None, 0, 1, 101)})
    yield here + "last-action", _last_action(spec, case, right, player)
    yield here + "cached", _cached(case, right, player)
    yield here + "isolation", [_isolated(player, case, then) for then in (case, neighbour)]


def _begin(case: WorkflowCase, player: Player) -> Iterator[Observation]:
    reply = player.reset(case.id)
    facts = {"kind": reply.kind, "reward": reply.data.get("reward"), "done": reply.data.get("done")}
    yield (
        "reset",
        {**facts, "task_id": reply.observation.get("task_id"), "exit_code": reply.observation.get("exit_code")},
    )
    rows = [line.rsplit(" ", 1) for line in player.shell(_LIST).output.splitlines()]
    names = [name.partition(" ")[0] for name, _ in rows]
    inputs = [name for name in names if name.endswith(".json")]
    yield (
        "workspace",
        {
            "instructions": names.count("INSTRUCTIONS.md"),
            "json": len(inputs),
            "others": len(names) - len(inputs) - names.count("INSTRUCTIONS.md"),
            "owners": sorted({owner for _, owner in rows}),  # type: ignore[dict-item]
            "regular": all(name.endswith(" regular file") for name, _ in rows),
        },
    )
    text = player.shell("cat INSTRUCTIONS.md").output
    yield "instructions", {"named": sum(name in text for name in inputs), "same": text == reply.output}


def _solve(spec: WorkflowSpec, case: WorkflowCase, player: Player) -> tuple[Right, JsonValue]:
    """The right answer, from the solver in the container or from a recorded answer."""
    player.reset(case.id)
    if case.id in spec.answers:
        right, exit_code = load_answer(spec.answers[case.id]), 0
    else:
        command = f"python3 -I - <<'SOLVER'\n{spec.solvers[case.family]}\nSOLVER\ncat answer.json"
        reply = player.shell(command)
        right, exit_code = load_answer(reply.output), reply.observation.get("exit_code")  # type: ignore[assignment]
    return right, {"components": len(right), "exit_code": exit_code}


def _inputs(player: Player, case: WorkflowCase, seed: int | None) -> str:
    player.reset(case.id, seed)
    return player.shell(_DIGEST).output


def _last_action(spec: WorkflowSpec, case: WorkflowCase, right: Right, player: Player) -> JsonValue:
    player.reset(case.id)
    write = write_file(dump(right)) + "\necho last"
    replies = [player.shell("true") for _ in range(spec.max_actions - 1)] + [player.shell(write)]
    done = [reply.data.get("done") for reply in replies]
    again = [player.shell("rm answer.json").raw, player.finish().raw]
    cached = all(_text(raw) == _text(replies[-1].raw) for raw in again)
    return {"cached": cached, "done": done, "output": replies[-1].output, "reward": replies[-1].reward}


def _cached(case: WorkflowCase, right: Right, player: Player) -> JsonValue:
    """Finish without an answer, then write the right one: the 0 stays."""
    player.reset(case.id)
    replies = [player.finish(), player.shell(write_file(dump(right))), player.finish()]
    return {"identical": len({_text(reply.raw) for reply in replies}) == 1, "reward": replies[0].reward}


def _isolated(player: Player, case: WorkflowCase, then: WorkflowCase) -> str:
    player.reset(case.id)
    player.shell(_LEFT)
    player.reset(then.id)
    return player.shell(_FIND_LEFT).output


def _text(raw: object) -> str:
    return json.dumps(raw, sort_keys=True)
