"""What the arena asks of a task, answered for the workflow cases: instructions, a fresh folder, a grade."""

import json
import math
import os
from importlib import import_module
from importlib.util import find_spec

from arena.episode import Grade
from arena.failures import InfrastructureError
from arena.remove import remove

from workflow.grading import UnacceptableError, load_answer
from workflow.workspace import read_answer

DIFFICULTIES, SEEDS = (1, 2), (101, 307)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def load_curriculum():
    """A vendored module takes the place of ours when the image has one."""
    return import_module("workflow.vendored" if find_spec("workflow.vendored") else "workflow.curriculum")


class WorkflowTask:
    """One case at a time in the folder `path`, whose parent only root can change."""

    max_actions = 16
    description = "Procedural data workflows: read the instructions, write answer.json, finish."

    def __init__(self, path: str, uid: int, gid: int, curriculum):
        self._parent, self._name = os.path.split(path)
        self._owner, self._curriculum = (uid, gid), curriculum
        self._cases = {
            f"{family}-d{difficulty}-s{seed}": (family, seed, difficulty)
            for family in curriculum.TASK_IDS
            for difficulty in DIFFICULTIES
            for seed in SEEDS
        }
        self.ids, self._task, self._folder = tuple(self._cases), None, -1

    def prepare(self, task_id: str) -> str:
        """A new folder with the case's files; returns the instructions."""
        self._task = None
        task = self._curriculum.make_task(*self._cases[task_id])
        self.renew()
        prompt = _part(task, "prompt")
        for name, content in {**_part(task, "files"), "INSTRUCTIONS.md": prompt}.items():
            text = content if isinstance(content, (str, bytes)) else json.dumps(content)
            self._write(name, text if isinstance(text, bytes) else text.encode())
        self._task = task
        return prompt

    def grade(self, task_id: str) -> Grade:
        """Any answer gets a grade; only a server that fails gives an error."""
        try:
            answer = load_answer(read_answer(self._folder, self._owner[0]))
        except UnacceptableError as error:
            return Grade(0.0, f"no acceptable answer.json: {error}"[:200])
        reward = float(self._curriculum.grade(self._task, answer))
        if not (math.isfinite(reward) and 0 <= reward <= 1):
            raise InfrastructureError(f"the curriculum gave the reward {reward}")
        return Grade(reward, json.dumps({"reward": reward}))

    def renew(self) -> None:
        """Replace the folder, whatever it was (at start: the repository of the base image), by an empty one.

        A new directory has no mode, attribute, list or descriptor of the last episode.
        """
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        parent = os.open(self._parent, flags)
        try:
            remove(self._name, parent)
            os.mkdir(self._name, 0o700, dir_fd=parent)
            if self._folder >= 0:
                os.close(self._folder)
            self._folder = os.open(self._name, flags, dir_fd=parent)
        finally:
            os.close(parent)
        os.fchown(self._folder, *self._owner)
        os.fchmod(self._folder, 0o755)

    def _write(self, name, data):
        with os.fdopen(os.open(name, _NEW, 0o644, dir_fd=self._folder), "wb") as file:
            file.write(data)
            os.fchown(file.fileno(), *self._owner)
            os.fchmod(file.fileno(), 0o644)


def _part(task, name):
    """A vendored module may give mappings."""
    return task[name] if isinstance(task, dict) else getattr(task, name)
