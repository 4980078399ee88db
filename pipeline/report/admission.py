"""Whether the consumer would admit a submission: each of its public rules, with the value found and the limit.

Nothing is sent to anybody; `policies/arena-limits.json` is what was observed of the consumer's request contract.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from pipeline.errors import ConfigError
from pipeline.model.digest import Digest, digest_of
from pipeline.model.record import Record
from pipeline.model.reference import load_reference
from pipeline.report.facts import ImageFacts
from pipeline.report.submission import Submission

# the file may come with somebody else's evidence, and an ordinary pattern can run for ever
_PATTERN = re.compile(r"(?:\[[A-Za-z0-9_.-]{1,40}\]){1,8}(?:\{[0-9]{1,3},[0-9]{1,3}\})?")


class Range(BaseModel):
    """Both ends are allowed."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    min: int
    max: int


class ArenaLimits(BaseModel):
    """The consumer's limits; what else the file says is for people."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    task_fields: Mapping[str, Range]
    splits: tuple[str, ...]
    task_id_pattern: str
    wall_sum_max_s: int
    tasks_min: int
    tasks_max: int
    distinct_images_max: int
    request_required: tuple[str, ...]
    request_optional: tuple[str, ...]
    name_length: tuple[int, int]
    example_actions: tuple[int, int]
    image_registries: tuple[str, ...]
    image_platform: str
    image_compressed_bytes_below: int
    image_layers_max: int
    server_ports: int
    server_port_reserved: tuple[int, ...]


class Rule(Record):
    """One rule: what it limits, what was found, and who breaks it."""

    rule: str
    statement: str
    limit: JsonValue
    value: JsonValue
    passed: bool
    offenders: tuple[str, ...] = ()


class Admission(Record):
    """admission.json. `state` says that nobody was asked: this is our reading of the rules, named by `limits`."""

    kind: Literal["admission/v1"] = "admission/v1"
    evidence: Digest
    limits: Digest
    state: Literal["not performed"] = "not performed"
    admissible: bool
    failed: tuple[str, ...]
    rules: tuple[Rule, ...]


def load_limits(raw: bytes, where: str) -> ArenaLimits:
    """Parse arena-limits.json; ConfigError names the first field that is wrong."""
    try:
        limits = ArenaLimits.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise ConfigError(f"not a file of limits: {field}: {first['msg']}", where=where) from error
    if _PATTERN.fullmatch(limits.task_id_pattern) is None:
        raise ConfigError(
            f"task_id_pattern: {limits.task_id_pattern!r} is not character classes with at most one repeated",
            where=where,
            remedy="write it as [A-Za-z0-9][A-Za-z0-9_.-]{0,127}",
        )
    return limits


def check_admission(submission: Submission, images: Sequence[ImageFacts], limits: bytes, where: str) -> Admission:
    """Every rule of the limits file on a request and its images; ConfigError when the file is not one of limits."""
    parsed = load_limits(limits, where)
    rules = (
        *_request_rules(submission, parsed),
        *_task_rules(submission, parsed),
        *_budget_rules(submission, parsed),
        *_image_rules(submission, images, parsed),
    )
    failed = tuple(rule.rule for rule in rules if not rule.passed)
    return Admission(
        evidence=submission.source.evidence,
        limits=digest_of(limits),
        admissible=not failed,
        failed=failed,
        rules=rules,
    )


def _request_rules(submission: Submission, limits: ArenaLimits) -> Iterator[Rule]:
    request = submission.to_request()
    missing = [name for name in limits.request_required if request.get(name) in (None, "", [], {})]
    unknown = sorted(set(request) - {*limits.request_required, *limits.request_optional})
    reserved: list[JsonValue] = list(limits.server_port_reserved)
    actions = submission.example_actions
    misfits = [str(index) for index, action in enumerate(actions) if misfit(action, submission.schema_["action"])]
    finish = misfit(submission.finish_action, submission.schema_["action"])
    yield _rule("request_required", "the request has every field that it must have", list(limits.request_required),
                [*sorted(request)], missing)  # fmt: skip
    yield _rule("request_known", "the request has no field that the consumer does not know", 0, len(unknown), unknown)
    yield _within("name_length", "length of the name, in characters", limits.name_length, len(submission.name))
    yield _within("example_actions", "number of example actions", limits.example_actions, len(actions))
    yield _rule("example_actions_fit", "example actions fit the served schema", 0, len(misfits), misfits)
    yield _rule(
        "finish_action_fits", "the finish action fits the served schema", "", finish, [finish] if finish else []
    )
    # the request names one port by its form; the rule is here because the limits have it
    yield _within("server_ports", "number of ports that the server listens on", (1, limits.server_ports), 1)
    yield _rule("server_port_reserved", "the server's port is not a reserved one", reserved, submission.server_port,
                [str(submission.server_port)] if submission.server_port in reserved else [])  # fmt: skip


def _task_rules(submission: Submission, limits: ArenaLimits) -> Iterator[Rule]:
    tasks = submission.tasks
    wrong = [task.task_id for task in tasks if not re.fullmatch(limits.task_id_pattern, task.task_id)]
    doubled = sorted(name for name, count in Counter(task.task_id for task in tasks).items() if count > 1)
    splits = sorted({task.split for task in tasks})
    yield _within("tasks", "number of tasks", (limits.tasks_min, limits.tasks_max), len(tasks))
    yield _rule("task_id_pattern", "every task id matches the pattern", limits.task_id_pattern, len(wrong), wrong)
    yield _rule("task_ids_distinct", "no task id stands twice", 0, len(doubled), doubled)
    yield _rule("splits", "every split is a known one", list(limits.splits), list(splits),
                [split for split in splits if split not in limits.splits])  # fmt: skip


def _budget_rules(submission: Submission, limits: ArenaLimits) -> Iterator[Rule]:
    budgets = {task.task_id: task.model_dump() for task in submission.tasks}
    for name, allowed in sorted(limits.task_fields.items()):
        values = {task_id: budget.get(name) for task_id, budget in budgets.items()}
        stated = [value for value in values.values() if value is not None]
        outside = [task_id for task_id, v in values.items() if v is None or not allowed.min <= v <= allowed.max]
        found: JsonValue = {"min": min(stated), "max": max(stated)} if stated else None
        yield _rule(name, f"{name} of every task is within the range", allowed.model_dump(), found, outside)
    walls = {task.task_id: task.reset_wall_s + task.rollout_wall_s + task.verifier_wall_s for task in submission.tasks}
    yield _rule("wall_sum_max_s", "reset, rollout and verifier of a task, in seconds, together", limits.wall_sum_max_s,
                max(walls.values()),
                [name for name, sum_s in walls.items() if sum_s > limits.wall_sum_max_s])  # fmt: skip


def _image_rules(submission: Submission, images: Sequence[ImageFacts], limits: ArenaLimits) -> Iterator[Rule]:
    named = {task.image for task in submission.tasks} | {submission.image}
    used = [image for image in images if any(one.endswith(image.manifest.digest) for one in named)]
    references = {name: load_reference(name, "submission.json") for name in sorted(named)}
    tagged = [name for name, reference in references.items() if reference.digest is None]
    registries = sorted({reference.registry for reference in references.values()})
    platforms = {image.id: f"{image.config.view.os}/{image.config.view.architecture}" for image in used}
    sizes = {image.id: image.manifest.compressed_bytes for image in used}
    layers = {image.id: len(image.manifest.view.layers) for image in used}
    below = limits.image_compressed_bytes_below
    yield _within("distinct_images_max", "number of distinct images", (1, limits.distinct_images_max), len(named))
    yield _rule("images_pinned", "every image is named by digest", 0, len(tagged), tagged)
    yield _rule("image_registries", "every image is in a registry that the consumer pulls from",
                list(limits.image_registries), list(registries),
                [name for name, at in references.items() if at.registry not in limits.image_registries])  # fmt: skip
    yield _rule("image_platform", "every image is for the consumer's platform", limits.image_platform, dict(platforms),
                [name for name, platform in platforms.items() if platform != limits.image_platform])  # fmt: skip
    yield _rule("image_compressed_bytes_below", "compressed bytes of every image are below the limit", below,
                dict(sizes), [name for name, size in sizes.items() if size >= below])  # fmt: skip
    yield _rule("image_layers_max", "number of layers of every image", limits.image_layers_max, dict(layers),
                [name for name, count in layers.items() if count > limits.image_layers_max])  # fmt: skip


def misfit(action: Mapping[str, JsonValue], schema: JsonValue) -> str:
    """Why an action does not fit a flat object schema (required, properties, enum, type, maxLength); else empty."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(schema, Mapping) or not isinstance(properties, Mapping):
        return "the schema is not one of an object"
    required = schema.get("required")
    for name in required if isinstance(required, list) else []:
        if name not in action:
            return f"{name} is missing"
    for name, value in action.items():
        rule = properties.get(name)
        if not isinstance(rule, Mapping):
            return f"{name} is unknown"
        allowed, longest = rule.get("enum"), rule.get("maxLength")
        if isinstance(allowed, list) and value not in allowed:
            return f"{name} is not one of the allowed values"
        if rule.get("type") == "string" and not isinstance(value, str):
            return f"{name} is not text"
        if isinstance(longest, int) and isinstance(value, str) and len(value) > longest:
            return f"{name} is longer than {longest}"
    return ""


def _rule(rule: str, statement: str, limit: JsonValue, value: JsonValue, offenders: Sequence[str]) -> Rule:
    return Rule(
        rule=rule, statement=statement, limit=limit, value=value, passed=not offenders, offenders=tuple(offenders)
    )


def _within(rule: str, statement: str, limit: tuple[int, int], value: int) -> Rule:
    low, high = limit
    bounds: JsonValue = {"min": low, "max": high}
    return Rule(rule=rule, statement=statement, limit=bounds, value=value, passed=low <= value <= high)
