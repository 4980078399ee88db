"""Which tasks a release has, and in which order they stand in a submission."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from pipeline.errors import ConfigError
from pipeline.model.release import TaskGroup, TaskId

TaskIds = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class PlacedTask:
    """A task at its place: the image that serves it, its id, and its split."""

    image: str
    task_id: str
    split: str


@dataclass(frozen=True)
class TaskProblem:
    """What is wrong with the groups: where below `tasks`, what, and the names that would be right."""

    location: tuple[str | int, ...]
    what: str
    valid: tuple[str, ...]


class _Case(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)
    id: TaskId


def load_case_ids(raw: bytes, where: str) -> tuple[str, ...]:
    """The ids in a cases.json, in its order; ConfigError when it is not a list of cases with ids."""
    try:
        cases = TypeAdapter(tuple[_Case, ...]).validate_json(raw, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(map(str, first["loc"]))
        raise ConfigError(f"not a list of cases: {location}: {first['msg']}", where=where) from error
    return tuple(case.id for case in cases)


def find_problem(groups: Sequence[TaskGroup], available: TaskIds) -> TaskProblem | None:
    """The first thing that is wrong with groups over the tasks of each image by id; None when they can be placed."""
    placed: set[str] = set()
    for index, group in enumerate(groups):
        if group.image not in available:
            return TaskProblem((index, "image"), f"no image {group.image!r}", tuple(available))
        valid = tuple(available[group.image])
        for number, task_id in enumerate(valid if group.ids is None else group.ids):
            location = (index, "image") if group.ids is None else (index, "ids", number)
            if task_id not in valid:
                return TaskProblem(location, f"image {group.image!r} has no task {task_id!r}", valid)
            if task_id in placed:
                return TaskProblem(location, f"task {task_id!r} is named twice", ())
            placed.add(task_id)
    return None


def place_tasks(groups: Sequence[TaskGroup], available: TaskIds) -> tuple[PlacedTask, ...]:
    """Tasks in the order of the groups; without groups all of them, image by image. ConfigError as `find_problem`."""
    groups = groups or [TaskGroup(image=image) for image, ids in available.items() if ids]
    problem = find_problem(groups, available)
    if problem is not None:
        raise ConfigError(problem.what, where=".".join(map(str, ("tasks", *problem.location))))
    return tuple(
        PlacedTask(group.image, task_id, group.split)
        for group in groups
        for task_id in (available[group.image] if group.ids is None else group.ids)
    )
