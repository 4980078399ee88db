"""The diagnosis of a log whose figures were computed by hand; what was not logged never becomes a zero."""

from __future__ import annotations

import json

import pytest

from pipeline.model.digest import digest_of
from pipeline.report.diagnosis import DiagnosedLog, StepRange, TrainingDiagnosis, diagnose
from pipeline.report.training_log import load_log

EVIDENCE, TASKS = digest_of(b"evidence"), digest_of(b"tasks")

# Three tasks a, b, c. The counter starts at 3, so that it went round once before: 3 and 6 are a, 4 and 7 are b, 8 is c.
LOG = b"""
{"step": 10, "rewards": [1, 0, 0, 1],    "grad_norm": 0.5, "step_time_s": 10, "task_counter": 3}
{"step": 11, "rewards": [0, 0, 0, 0],    "grad_norm": 0,   "step_time_s": 20, "task_counter": 4}
{"step": 14, "rewards": [1, 1, null, 1], "grad_norm": 0.0, "step_time_s": 40, "task_counter": 6}
{"step": 15, "rewards": [0.5],           "grad_norm": NaN, "step_time_s": 30, "task_counter": 7}
{"step": 16, "rewards": [0, null, 0.25],                   "step_time_s": 90, "task_counter": 8}
{"step": 19, "grad_norm": 2.0}
"""


def run(raw: bytes = LOG, tasks: int | None = 3, ids: tuple[str, ...] = ("a", "b", "c")) -> TrainingDiagnosis:
    source = DiagnosedLog(evidence=EVIDENCE, log=digest_of(raw), log_bytes=len(raw), tasks_digest=TASKS)
    return diagnose(load_log(raw, "log"), source, tasks, ids)


def test_coverage_names_what_is_missing() -> None:
    cover = run().coverage
    # 10 to 19 are ten steps; 12, 13, 17 and 18 were not logged
    assert (cover.first_step, cover.last_step, cover.expected_steps, cover.logged_steps) == (10, 19, 10, 6)
    assert (cover.missing_steps, cover.ratio) == (4, 0.6)
    assert cover.missing == (StepRange(first=12, last=13), StepRange(first=17, last=18))
    available = {name: (field.available, field.unavailable) for name, field in cover.fields.items()}
    assert available == {"rewards": (5, 1), "grad_norm": (5, 1), "step_time_s": (5, 1), "task_counter": (5, 1)}


def test_groups_are_mixed_uniform_or_undetermined() -> None:
    groups = run().groups
    # mixed: 10 and 16; uniform: 11 and 15; undetermined: 14 (an unknown reward beside equal ones) and 19 (none)
    assert (groups.groups, groups.mixed, groups.uniform, groups.undetermined) == (6, 2, 2, 2)
    assert groups.mixed_ratio == 0.5
    assert (groups.episodes, groups.episodes_without_reward) == (16, 2)
    # 2 + 0 + 3 + 0.5 + 0.25 over 14 known rewards
    assert groups.mean_reward == 5.75 / 14


def test_gradients_that_were_not_logged_are_not_zero() -> None:
    gradients = run().gradients
    # zero: 11 and 14; not zero: 10 and 19; not finite: 15; not logged: 16
    assert (gradients.zero, gradients.nonzero, gradients.not_finite, gradients.unavailable) == (2, 2, 1, 1)
    assert gradients.zero_ratio == 0.4


def test_step_times_are_the_median_and_the_nearest_rank() -> None:
    times = run().step_times
    # 10, 20, 30, 40, 90: the third, and the fifth, since 0.9 * 5 = 4.5 rounds up
    assert (times.steps, times.median_s, times.p90_s) == (5, 30, 90)


@pytest.mark.parametrize(("count", "rank"), [(1, 1), (2, 2), (9, 9), (10, 9), (11, 10), (20, 18), (100, 90)])
def test_the_ninetieth_percentile_is_the_nearest_rank(count: int, rank: int) -> None:
    raw = b"".join(b'{"step": %d, "step_time_s": %d}\n' % (step, step) for step in range(1, count + 1))
    assert run(raw).step_times.p90_s == rank


def test_ordinals_follow_from_the_counter_and_say_that_they_are_inferred() -> None:
    found = run()
    assert found.mapping.basis == "inferred"
    assert found.mapping.rule == "ordinal = task_counter modulo 3, in the order of tasks.jsonl"
    assert (found.mapping.tasks, found.mapping.unmapped_steps) == (3, 1)
    assert found.tasks_digest == TASKS
    a, b, c = found.ordinals
    assert [(one.ordinal, one.task_id, one.steps) for one in found.ordinals] == [(0, "a", 2), (1, "b", 2), (2, "c", 1)]
    # a: steps 10 and 14; five of its seven known rewards are 1
    assert (a.groups.mixed, a.groups.uniform, a.groups.undetermined, a.groups.mean_reward) == (1, 0, 1, 5 / 7)
    assert (a.gradients.zero, a.gradients.nonzero, a.step_times.median_s, a.step_times.p90_s) == (1, 1, 25, 40)
    # b: steps 11 and 15; one half over five episodes
    assert (b.groups.mixed, b.groups.uniform, b.groups.mean_reward) == (0, 2, 0.1)
    assert (b.gradients.zero, b.gradients.not_finite, b.step_times.median_s) == (1, 1, 25)
    # c: step 16
    assert (c.groups.mixed, c.groups.mean_reward, c.gradients.unavailable) == (1, 0.125, 1)
    assert c.gradients.zero_ratio is None


def test_a_task_that_was_never_logged_is_there_without_figures() -> None:
    last = run(tasks=4, ids=("a", "b", "c", "d")).ordinals[1]  # 3, 4, 6, 7, 8 modulo 4 are 3, 0, 2, 3, 0
    assert (last.task_id, last.steps, last.groups.mean_reward, last.step_times.median_s) == ("b", 0, None, None)
    assert last.groups.mixed_ratio is None


def test_without_a_number_of_tasks_the_mapping_is_unknown() -> None:
    found = run(tasks=None, ids=())
    assert (found.mapping.basis, found.mapping.tasks, found.mapping.unmapped_steps) == ("unknown", None, 6)
    assert found.ordinals == ()
    assert found.groups.mixed == 2, "what needs no mapping is there all the same"


def test_without_a_counter_the_mapping_is_unknown() -> None:
    found = run(b'{"step": 1, "rewards": [1, 0]}')
    assert found.mapping.basis == "unknown"
    assert found.mapping.unmapped_steps == 1
    assert [one.steps for one in found.ordinals] == [0, 0, 0]


def test_a_number_of_tasks_that_is_not_that_of_the_list_gives_ordinals_without_names() -> None:
    found = run(tasks=5)
    # 3, 4, 6, 7, 8 modulo 5
    assert [(one.ordinal, one.task_id) for one in found.ordinals] == [(1, None), (2, None), (3, None), (4, None)]
    assert found.ordinals[2].steps == 2
    assert "an order that is not known" in found.mapping.rule
    assert found.tasks_digest is None


def test_an_empty_log_has_nothing_and_no_zero_ratio() -> None:
    found = run(b"")
    cover = found.coverage
    assert (cover.first_step, cover.last_step, cover.expected_steps, cover.ratio) == (None, None, 0, None)
    assert (found.step_times.median_s, found.groups.mean_reward, found.gradients.zero_ratio) == (None, None, None)


def test_rewards_beyond_all_measure_have_no_mean() -> None:
    found = run(b'{"step": 1, "rewards": [1.7e308, 1.7e308]}')
    assert found.groups.mean_reward is None
    assert found.groups.uniform == 1


def test_gaps_without_end_are_counted_and_cut() -> None:
    raw = b"".join(b'{"step": %d}\n' % (2 * step) for step in range(3001))
    cover = run(raw).coverage
    assert (cover.missing_steps, len(cover.missing)) == (3000, 1000)
    far = run(b'{"step": 0}\n{"step": 1000000000000}').coverage
    assert (far.missing_steps, far.missing) == (10**12 - 1, (StepRange(first=1, last=10**12 - 1),))


def test_the_bytes_are_the_same_each_time_and_an_edit_shows() -> None:
    raw = run().to_bytes()
    assert raw == run().to_bytes()
    document = json.loads(raw)
    assert document["evidence"] == EVIDENCE
    assert document["log"] == digest_of(LOG)
    found = TrainingDiagnosis.load(raw, "x")
    assert found.content == found.digest_content()
    document["gradients"]["zero"] = 0
    forged = TrainingDiagnosis.load(json.dumps(document).encode(), "x")
    assert forged.content != forged.digest_content()
