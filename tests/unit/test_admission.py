"""Admission: each rule of the consumer, at its limit and one past it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import ConfigError
from pipeline.model.digest import digest_of
from pipeline.report.admission import Admission, Rule, check_admission, load_limits, misfit
from pipeline.report.facts import ImageFacts
from pipeline.report.submission import Submission
from tests.fakes import reported
from tests.fakes.documented import EVIDENCE, LIMITS, SCHEMA, facts_of, submission_of

GOLDEN = Path(__file__).parents[1] / "golden" / "documents"
FIVE, FIVE_IMAGES = submission_of("five-repairs"), facts_of("five-repairs").images


def admit(submission: Submission = FIVE, images: tuple[ImageFacts, ...] = FIVE_IMAGES) -> Admission:
    return check_admission(submission, images, LIMITS, "arena-limits.json")


def rule(found: Admission, name: str) -> Rule:
    return next(one for one in found.rules if one.rule == name)


def with_task(**changes: Any) -> Submission:
    """The five repairs with the first task changed."""
    first = FIVE.tasks[0].model_copy(update=changes)
    return FIVE.model_copy(update={"tasks": (first, *FIVE.tasks[1:])})


def test_the_pinned_releases_would_be_admitted() -> None:
    found = admit()
    assert found.admissible
    assert found.failed == ()
    assert len(found.rules) == 30
    assert found.state == "not performed", "nobody was asked"
    assert (found.evidence, found.limits) == (EVIDENCE, digest_of(LIMITS))
    assert found.to_bytes() == (GOLDEN / "admission.json").read_bytes()
    thirty_four = submission_of("thirty-four-tasks", "ghcr")
    assert admit(thirty_four, facts_of("thirty-four-tasks", "ghcr").images).admissible


def test_a_local_registry_fails_its_rule_and_no_other() -> None:
    found = admit(submission_of("thirty-four-tasks", "local"), facts_of("thirty-four-tasks", "local").images)
    assert not found.admissible
    assert found.failed == ("image_registries",)
    failed = rule(found, "image_registries")
    assert (failed.value, failed.limit) == (["127.0.0.1:5710"], ["ghcr.io", "docker.io"])
    assert len(failed.offenders) == 3


RANGES = json.loads(LIMITS)["task_fields"]


@pytest.mark.parametrize("name", sorted(RANGES))
@pytest.mark.parametrize("end", ["min", "max"])
def test_each_budget_at_its_end_passes_and_one_past_it_fails(name: str, end: str) -> None:
    limit, past = RANGES[name][end], {"min": -1, "max": 1}[end]
    assert rule(admit(with_task(**{name: limit})), name).passed
    failed = rule(admit(with_task(**{name: limit + past})), name)
    assert not failed.passed
    assert failed.offenders == ("format-code-task-000666",)
    assert failed.limit == RANGES[name]
    assert isinstance(failed.value, dict)
    assert failed.value[end] == limit + past


def test_the_sum_of_walls_at_the_limit_passes_and_one_second_more_fails() -> None:
    assert rule(admit(with_task(reset_wall_s=200, rollout_wall_s=2000, verifier_wall_s=1400)), "wall_sum_max_s").passed
    failed = rule(admit(with_task(reset_wall_s=200, rollout_wall_s=2000, verifier_wall_s=1401)), "wall_sum_max_s")
    assert (failed.passed, failed.value, failed.limit) == (False, 3601, 3600)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"split": "training"}, "splits"),
        ({"task_id": "-dash"}, "task_id_pattern"),
        ({"task_id": "a" * 129}, "task_id_pattern"),
        ({"task_id": "line\n"}, "task_id_pattern"),
        ({"task_id": "format-code-task-001926"}, "task_ids_distinct"),
        ({"image": "ghcr.io/somebody/else:latest"}, "images_pinned"),
        ({"image": f"quay.io/somebody/else@{EVIDENCE}"}, "image_registries"),
    ],
)
def test_a_task_that_breaks_a_rule_fails_that_rule_alone(changes: dict[str, Any], name: str) -> None:
    assert admit(with_task(**changes)).failed == (name,)


def test_names_and_example_actions_have_lengths() -> None:
    for name, passed in (("", False), ("x", True), ("x" * 200, True), ("x" * 201, False)):
        assert rule(admit(FIVE.model_copy(update={"name": name})), "name_length").passed is passed
    for count, passed in ((0, False), (1, True), (16, True), (17, False)):
        actions = ({"operation": "finish"},) * count
        assert rule(admit(FIVE.model_copy(update={"example_actions": actions})), "example_actions").passed is passed


def test_an_empty_field_is_a_missing_one() -> None:
    failed = rule(admit(FIVE.model_copy(update={"submission_id": ""})), "request_required")
    assert failed.offenders == ("submission_id",)


def test_a_reserved_port_and_actions_that_do_not_fit_are_named() -> None:
    assert admit(FIVE.model_copy(update={"server_port": 49983})).failed == ("server_port_reserved",)
    odd = FIVE.model_copy(update={"example_actions": ({"operation": "finish"}, {"operation": "run"})})
    assert rule(admit(odd), "example_actions_fit").offenders == ("1",)
    assert admit(FIVE.model_copy(update={"finish_action": {}})).failed == ("finish_action_fits",)


def test_fifty_tasks_pass_and_fifty_one_fail() -> None:
    def many(count: int) -> Submission:
        tasks = tuple(FIVE.tasks[0].model_copy(update={"task_id": f"t{number}"}) for number in range(count))
        return FIVE.model_copy(update={"tasks": tasks})

    assert admit(many(50)).admissible
    failed = admit(many(51))
    assert failed.failed == ("tasks",)
    assert rule(failed, "tasks").value == 51


def test_fifty_images_pass_and_fifty_one_fail() -> None:
    def spread(count: int) -> Submission:
        images = [f"ghcr.io/a/b@{digest_of(str(number).encode())}" for number in range(count)]
        tasks = tuple(
            FIVE.tasks[0].model_copy(update={"task_id": f"t{number}", "image": image})
            for number, image in enumerate(images)
        )
        return FIVE.model_copy(update={"tasks": tasks, "image": images[0]})

    assert rule(admit(spread(50)), "distinct_images_max").passed
    assert not rule(admit(spread(51)), "distinct_images_max").passed


def measured(
    layers: list[tuple[str, int]], spoil: Callable[[ImageFacts], ImageFacts] = lambda image: image
) -> Admission:
    """Admission of one image of these layers."""
    image = spoil(replace(reported.image("one", layers), schema=SCHEMA))
    reference = f"ghcr.io/a/b@{image.manifest.digest}"
    task = FIVE.tasks[0].model_copy(update={"image": reference})
    return admit(FIVE.model_copy(update={"tasks": (task,), "image": reference}), (image,))


def test_compressed_bytes_stay_below_two_gib() -> None:
    config_bytes = reported.image("one", [reported.layer("big", 1)]).manifest.view.config.size
    for size, passed in ((2**31 - 1, True), (2**31, False)):
        one = rule(measured([reported.layer("big", size - config_bytes)]), "image_compressed_bytes_below")
        assert (one.value, one.passed) == ({"one": size}, passed)


def test_128_layers_pass_and_129_fail() -> None:
    for count, passed in ((128, True), (129, False)):
        found = measured([reported.layer(f"layer {number}", 10) for number in range(count)])
        assert rule(found, "image_layers_max").passed is passed


def test_another_platform_fails() -> None:
    def arm(image: ImageFacts) -> ImageFacts:
        document = json.loads(image.config.raw)
        document["architecture"] = "arm64"
        return replace(image, config=type(image.config)(json.dumps(document).encode()))

    failed = rule(measured([reported.layer("x", 1)], arm), "image_platform")
    assert (failed.passed, failed.value, failed.limit) == (False, {"one": "linux/arm64"}, "linux/amd64")


@pytest.mark.parametrize(
    "action",
    [{}, {"operation": "run"}, {"operation": "shell", "more": 1}, {"operation": "shell", "command": 3},
     {"operation": "shell", "command": "x" * 16001}],
)  # fmt: skip
def test_actions_that_the_server_would_refuse_do_not_fit(action: dict[str, Any]) -> None:
    assert misfit(action, SCHEMA["action"]) != ""


def test_actions_that_the_server_takes_fit() -> None:
    for action in ({"operation": "finish"}, {"operation": "shell", "command": "x" * 16000}):
        assert misfit(action, SCHEMA["action"]) == ""
    assert misfit({}, []) != ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"wall_sum_max_s": 3600', b'"wall_sum_max_s": "3600"'),
        (b'"tasks_min": 1,', b""),
        (b"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}", b"(a+)+"),
        (b"{", b"["),
    ],
)
def test_limits_that_are_none_are_refused(old: bytes, new: bytes) -> None:
    assert old in LIMITS
    with pytest.raises(ConfigError):
        load_limits(LIMITS.replace(old, new, 1), "arena-limits.json")
