"""The rules of any episode: reset first, a budget of actions, one terminal result that never changes.

A `Task` says what is prepared and how it is graded; `Arena` is the one place in the container where episodes happen;
`ArenaEnvironment` is the framework's view of it, one object a session.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import EnvironmentMetadata, State

from arena.cleanup import Cleanup
from arena.failures import RequestError
from arena.models import ShellAction, ShellObservation
from arena.shell import ShellResult, ShellRunner

_BUSY_WAIT_S, _PAUSE_S = 10.0, 0.001


@dataclass(frozen=True)
class Grade:
    """The terminal reward, between 0 and 1, and what the client reads beside it."""

    reward: float
    output: str
    exit_code: int | None = None


class Task(Protocol):
    """What an image asks for. Raise InfrastructureError when the image's part cannot be done."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Valid task ids; when there is one, a reset need not name it."""

    @property
    def max_actions(self) -> int:
        """Shell actions an episode; the last one runs and then the episode is graded."""

    @property
    def description(self) -> str:
        """One line for /metadata."""

    def prepare(self, task_id: str) -> str:
        """After the cleanup: put the workspace into its first state; returns the instructions."""

    def grade(self, task_id: str) -> Grade:
        """Grade what the agent left; no process of the agent is alive."""


class Arena:
    """The workspace, the runner and the cleanup that all sessions of this server share, one owner at a time."""

    def __init__(self, task: Task, runner: ShellRunner, cleanup: Cleanup) -> None:
        self.task, self.runner, self.cleanup = task, runner, cleanup
        self.lock = threading.Lock()
        self.owner: object | None = None
        self._is_leaving = False

    def environment(self) -> ArenaEnvironment:
        """The factory that the framework calls for each session and each stateless request: cheap, no effects."""
        return ArenaEnvironment(self)

    def leave(self) -> None:
        """The current session's client has gone, or the server stops: end what runs; the next session waits for it."""
        self._is_leaving = self.owner is not None
        self.runner.abort()

    def claim(self, owner: object) -> None:
        """Take `lock` for `owner`; RequestError while another session's episode goes on."""
        deadline = time.monotonic() + _BUSY_WAIT_S
        while self.owner in (None, owner) or self._is_leaving:
            if not self.lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
                break
            if self.owner in (None, owner):
                self.owner = owner
                return
            self.lock.release()
            # The session that leaves has not yet come to its end.
            time.sleep(_PAUSE_S)
        raise RequestError("another session's episode is running")

    def release(self, owner: object) -> None:
        """End the episode of `owner`: nothing of it keeps running. Does not wait when the arena is another's."""
        if self.owner is not owner:
            return
        with self.lock:
            try:
                self.runner.kill_all()
            finally:
                self.owner, self._is_leaving = None, False


class ArenaEnvironment(Environment[ShellAction, ShellObservation, State]):
    """One session's episode."""

    SUPPORTS_CONCURRENT_SESSIONS = False

    def __init__(self, arena: Arena) -> None:
        super().__init__()
        self._arena = arena
        self._task_id: str | None = None
        self._actions = 0
        self._state = State(episode_id=None, step_count=0)
        self._final: ShellObservation | None = None

    def reset(self, seed: int | None = None, episode_id: str | None = None, **other: Any) -> ShellObservation:
        """Begin an episode. A request that is refused leaves the running episode as it is."""
        task_id = self._requested_task(seed, episode_id, other)
        self._arena.claim(self)
        try:
            self._task_id = self._final = None
            with noting_failures():
                self._arena.runner.rearm()
                self._arena.cleanup.run()
                instructions = self._arena.task.prepare(task_id)
            self._task_id, self._actions = task_id, 0
        finally:
            self._arena.lock.release()
        self._state = State(episode_id=episode_id or uuid.uuid4().hex, step_count=0)
        return ShellObservation(task_id=task_id, output=instructions, reward=0.0, done=False)

    def step(self, action: ShellAction, timeout_s: float | None = None, **other: Any) -> ShellObservation:
        """One action. `timeout_s` of the framework is not used: every command has the same limit."""
        if self._task_id is None:
            raise RequestError("no episode is running: send a reset first")
        if self._final is not None:
            return self._final
        with self._arena.lock, noting_failures():
            return self._act(self._task_id, action)

    def close(self) -> None:
        """End the session. Stateless requests call this in the event loop."""
        self._task_id = None
        self._arena.release(self)

    @property
    def state(self) -> State:
        """The episode's id and the actions so far; fresh after construction."""
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        """For /metadata."""
        ids = self._arena.task.ids
        name = ids[0] if len(ids) == 1 else "arena"
        return EnvironmentMetadata(name=name, description=self._arena.task.description, version="1")

    def _act(self, task_id: str, action: ShellAction) -> ShellObservation:
        task, last = self._arena.task, None
        if action.operation == "shell" and self._actions < task.max_actions:
            last = self._arena.runner.run(action.command)
            self._actions += 1
            self._state = self._state.model_copy(update={"step_count": self._actions})
            if self._actions < task.max_actions:
                return _running(task_id, last)
        self._final = _terminal(task_id, task.grade(task_id), last)
        return self._final

    def _requested_task(self, seed: object, episode_id: object, other: dict[str, Any]) -> str:
        ids = self._arena.task.ids
        task_id = other.pop("task_id", None)
        if other:
            raise RequestError(f"unknown fields of a reset: {', '.join(sorted(other))[:200]}")
        if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool) or seed < 0):
            raise RequestError("seed must be an integer of at least 0, or absent")
        if episode_id is not None and not (isinstance(episode_id, str) and len(episode_id) <= 255):
            raise RequestError("episode_id must be a string of at most 255 characters, or absent")
        if task_id is None and len(ids) == 1:
            return ids[0]
        if not isinstance(task_id, str) or task_id not in ids:
            asked = "no task_id" if task_id is None else f"unknown task_id {str(task_id)[:100]!r}"
            raise RequestError(f"{asked}; valid ids: {', '.join(ids)}")
        return task_id


@contextlib.contextmanager
def noting_failures() -> Iterator[None]:
    """Write what our side could not do to the container's log as well: the client gets it as an error reply."""
    try:
        yield
    except RequestError:
        raise
    except Exception as error:
        print(f"{type(error).__name__}: {error}"[:1000], file=sys.stderr, flush=True)
        raise


def _running(task_id: str, result: ShellResult) -> ShellObservation:
    return ShellObservation(task_id=task_id, output=result.output, exit_code=result.exit_code, reward=0.0, done=False)


def _terminal(task_id: str, grade: Grade, last: ShellResult | None) -> ShellObservation:
    output, exit_code = (grade.output, grade.exit_code) if last is None else (last.output, last.exit_code)
    return ShellObservation(task_id=task_id, output=output, exit_code=exit_code, reward=grade.reward, done=True)
