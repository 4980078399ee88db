"""The rules of an episode, on a task and a runner that do nothing by themselves."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from arena.episode import Arena, ArenaEnvironment, Grade
from arena.failures import InfrastructureError, RequestError
from arena.models import ShellAction
from arena.shell import ShellResult


@dataclass
class Stage:
    """Task, runner and cleanup in one; notes what was asked of it."""

    ids: tuple[str, ...] = ("only",)
    max_actions: int = 3
    description: str = "a stage"
    grades: list[Any] = field(default_factory=lambda: [Grade(0.5, "graded\n")])
    calls: list[str] = field(default_factory=list)
    pause_s: float = 0.0

    def prepare(self, task_id: str) -> str:
        self.calls.append(f"prepare {task_id}")
        return f"do {task_id}"

    def grade(self, task_id: str) -> Grade:
        self.calls.append("grade")
        outcome = self.grades.pop(0) if len(self.grades) > 1 else self.grades[0]
        if isinstance(outcome, Exception):
            raise outcome
        return cast(Grade, outcome)

    def run(self, command: str = "") -> ShellResult:
        self.calls.append(f"run {command}".strip())
        time.sleep(self.pause_s)
        return ShellResult(7, f"ran {command}")

    def kill_all(self) -> None:
        self.calls.append("kill")

    def abort(self) -> None:
        self.calls.append("abort")

    def rearm(self) -> None:
        self.calls.append("rearm")


def arena_of(stage: Stage) -> Arena:
    return Arena(cast(Any, stage), cast(Any, stage), cast(Any, stage))


def shell(command: str = "x") -> ShellAction:
    return ShellAction(operation="shell", command=command)


FINISH = ShellAction(operation="finish")


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def environment(stage: Stage) -> ArenaEnvironment:
    return arena_of(stage).environment()


def test_a_step_before_a_reset_is_an_error(environment: ArenaEnvironment, stage: Stage) -> None:
    for action in (shell(), FINISH):
        with pytest.raises(RequestError, match="reset first"):
            environment.step(action)
    assert stage.calls == []


def test_reset_cleans_and_prepares(environment: ArenaEnvironment, stage: Stage) -> None:
    observation = environment.reset(seed=3)
    assert (observation.task_id, observation.output, observation.exit_code) == ("only", "do only", None)
    assert (observation.reward, observation.done) == (0.0, False)
    assert stage.calls == ["rearm", "run", "prepare only"]


@pytest.mark.parametrize(
    "request_data",
    [
        {"task_id": "other"}, {"task_id": 7}, {"task_id": ["only"]}, {"seed": -1}, {"seed": "1"}, {"seed": True},
        {"seed": 1.0}, {"episode_id": 4}, {"episode_id": "x" * 256}, {"more": 1},
    ],
)  # fmt: skip
def test_a_refused_reset_leaves_the_episode(environment: ArenaEnvironment, request_data: dict[str, Any]) -> None:
    environment.reset()
    environment.step(shell())
    with pytest.raises(RequestError):
        environment.reset(**request_data)
    assert environment.step(shell("again")).output == "ran again"
    assert environment.state.step_count == 2


def test_several_tasks_must_be_named() -> None:
    environment = arena_of(Stage(ids=("a", "b"))).environment()
    with pytest.raises(RequestError, match="valid ids: a, b"):
        environment.reset()
    assert environment.reset(task_id="b").output == "do b"


def test_the_last_action_runs_and_is_graded(environment: ArenaEnvironment, stage: Stage) -> None:
    environment.reset()
    assert [environment.step(shell(n)).done for n in "12"] == [False, False]
    last = environment.step(shell("3"))
    assert (last.done, last.reward, last.output, last.exit_code) == (True, 0.5, "ran 3", 7)
    assert stage.calls[-2:] == ["run 3", "grade"]


def test_the_terminal_result_is_cached(environment: ArenaEnvironment, stage: Stage) -> None:
    environment.reset()
    final = environment.step(FINISH)
    assert (final.done, final.reward, final.output) == (True, 0.5, "graded\n")
    assert environment.step(shell()) == environment.step(FINISH) == final
    assert stage.calls.count("grade") == 1
    environment.reset()
    assert environment.step(shell()).done is False


def test_a_grader_that_cannot_run_is_an_error_and_may_be_asked_again(stage: Stage) -> None:
    stage.grades = [InfrastructureError("no grader"), Grade(1.0, "")]
    environment = arena_of(stage).environment()
    environment.reset()
    with pytest.raises(InfrastructureError):
        environment.step(FINISH)
    assert environment.step(FINISH).reward == 1.0


def test_a_failed_reset_ends_the_episode(environment: ArenaEnvironment, stage: Stage, capsys: Any) -> None:
    environment.reset()
    stage.prepare = lambda task_id: (_ for _ in ()).throw(InfrastructureError("disk"))  # type: ignore[method-assign]
    with pytest.raises(InfrastructureError):
        environment.reset()
    assert "disk" in capsys.readouterr().err
    with pytest.raises(RequestError, match="reset first"):
        environment.step(shell())


def test_a_stateless_request_neither_resets_nor_waits_while_an_episode_runs(stage: Stage) -> None:
    stage.pause_s = 1.0
    arena = arena_of(stage)
    environment = arena.environment()
    environment.reset()
    running = threading.Thread(target=environment.step, args=(shell(),))
    running.start()
    begun = time.monotonic()
    other = arena.environment()
    with pytest.raises(RequestError, match="another session"):
        other.reset()
    other.close()
    assert other.state.step_count == 0
    assert time.monotonic() - begun < 0.5
    running.join()


def test_the_next_session_waits_for_one_that_leaves(stage: Stage) -> None:
    arena = arena_of(stage)
    first, second = arena.environment(), arena.environment()
    first.reset()
    arena.leave()
    threading.Timer(0.2, first.close).start()
    assert second.reset().output == "do only"
    assert stage.calls.index("kill") < len(stage.calls) - 2
    first.close()
    assert second.step(shell()).done is False


def test_metadata_names_the_only_task(environment: ArenaEnvironment) -> None:
    assert environment.get_metadata().name == "only"
