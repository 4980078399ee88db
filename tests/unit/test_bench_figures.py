"""The bench's arithmetic and its table, with right values; nothing here is timed."""

from __future__ import annotations

import pytest

from pipeline.bench.figures import Figure, judge, make_figure, not_measured, ratio, time_runs
from pipeline.bench.goals import GOALS, RELEASE, Goal, Unit
from pipeline.bench.session import GROUPS, BenchRun, choose_groups, describe_run
from pipeline.bench.table import format_value, render_group, render_outcome
from pipeline.errors import PipelineError, UsageError


@pytest.mark.parametrize(
    ("unit", "samples", "value", "low", "high"),
    [
        ("ms", [0.030, 0.010, 0.0125], 12.5, 10.0, 30.0),
        ("s", [2.0, 1.0, 4.0, 3.0], 2.5, 1.0, 4.0),
        ("MB", [25_000_000], 25.0, 25.0, 25.0),
        ("MB/s", [250e6, 260e6, 240e6], 250.0, 240.0, 260.0),
        ("%", [0.05], 5.0, 5.0, 5.0),
        ("bytes", [19_727], 19_727.0, 19_727.0, 19_727.0),
        ("count", [4], 4.0, 4.0, 4.0),
    ],
)
def test_a_figure_is_the_median_in_its_unit(
    unit: Unit, samples: list[float], value: float, low: float, high: float
) -> None:
    made = make_figure("scan", "one", Goal("one", unit), samples)
    assert made.value == pytest.approx(value)
    assert (made.low, made.high) == (pytest.approx(low), pytest.approx(high))
    assert made.runs == len(samples)


def test_one_slow_run_does_not_move_the_median() -> None:
    assert make_figure("scan", "one", Goal("one", "s"), [1.0, 1.1, 60.0]).value == pytest.approx(1.1)


def test_no_sample_is_an_error() -> None:
    with pytest.raises(PipelineError, match="without a sample"):
        make_figure("scan", "one", Goal("one", "s"), [])


@pytest.mark.parametrize(
    ("value", "higher", "outcome", "times"),
    [
        (250.0, False, "reached", 1.0),
        (250.1, False, "falls short", 1.0004),
        (125.0, False, "reached", 0.5),
        (250.0, True, "reached", 1.0),
        (249.9, True, "falls short", 0.9996),
        (500.0, True, "reached", 2.0),
    ],
)
def test_exactly_what_is_to_be_reached_is_reached(value: float, higher: bool, outcome: str, times: float) -> None:
    goal = Goal("one", "MB/s", 250, higher=higher)
    figure = Figure(group="scan", id="one", value=value)
    assert judge(figure, goal) == outcome
    assert ratio(figure, goal) == pytest.approx(times)


def test_what_cannot_be_measured_is_neither_reached_nor_short() -> None:
    goal = Goal("one", "s", 3)
    absent = not_measured("release", "one", "no environment of nox here")
    assert judge(absent, goal) == "not measured"
    assert ratio(absent, goal) is None
    assert absent.runs == 0


def test_a_figure_to_know_and_a_goal_of_nothing_have_no_ratio() -> None:
    figure = Figure(group="sigstore", id="one", value=3.0)
    assert judge(figure, Goal("one", "ms")) == "to know"
    assert ratio(figure, Goal("one", "ms")) is None
    assert judge(figure, Goal("one", "count", 0)) == "falls short"
    assert ratio(figure, Goal("one", "count", 0)) is None
    assert judge(Figure(group="sigstore", id="one", value=0.0), Goal("one", "count", 0)) == "reached"


def test_each_run_is_prepared_first_and_counted() -> None:
    order: list[str] = []
    samples = time_runs(lambda: order.append("run"), 3, lambda: order.append("prepare"))
    assert order == ["prepare", "run"] * 3
    assert len(samples) == 3
    assert min(samples) >= 0


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (19_727.0, "bytes", "19,727"),
        (1239.0, "count", "1,239"),
        (7.635383, "MB", "7.64 MB"),
        (140.5, "MB", "140 MB"),
        (1.5, "s", "1.5 s"),
        (0.0456, "s", "0.0456 s"),
        (3.987, "ms", "3.99 ms"),
        (1204.4, "ms", "1,204 ms"),
        (-0.62, "%", "-0.62 %"),
    ],
)
def test_values_read_well(value: float, unit: Unit, text: str) -> None:
    assert format_value(value, unit) == text


def test_the_table_says_what_was_measured_beside_what_is_to_be_reached() -> None:
    figures = [
        make_figure("release", "added-bytes", RELEASE["added-bytes"], [19_727]),
        make_figure("release", "health", RELEASE["health"], [3.0, 2.9, 3.2], reference="a bare container: 0.4 s"),
        not_measured("release", "fresh-machine", "on a new machine"),
    ]
    assert render_group("release", figures).splitlines()[2:] == [
        "software: compressed bytes added over its base                19,727                  <= 20,000       16,886",
        "docker run to /health                                         3 s  SHORT x2.00        <= 1.5 s        3.0 s",
        "    median of 3, 2.9 s to 3.2 s",
        "    beside: a bare container: 0.4 s",
        "build publish verify, first time, install included            not measured            <= 300 s        "
        "11 min, builds alone",
        "    on a new machine",
    ]
    assert render_outcome(figures) == "1 reached, 1 fall short, 1 not measured here, 0 to know"


def test_higher_is_better_where_the_goal_says_so() -> None:
    goal = GOALS["scan"]["scan-release"]
    lines = render_group("scan", [make_figure("scan", "scan-release", goal, [125e6])]).splitlines()
    assert "125 MB/s  SHORT x0.50" in lines[2]
    assert ">= 250 MB/s" in lines[2]


def test_every_group_of_goals_is_measured_by_something() -> None:
    assert list(GROUPS) == list(GOALS)
    assert all(goals for goals in GOALS.values())


def test_groups_run_in_their_order_and_an_unknown_one_is_named() -> None:
    assert choose_groups([]) == tuple(GOALS)
    assert choose_groups(["scan", "release"]) == ("release", "scan")
    with pytest.raises(UsageError, match="'reset'"):
        choose_groups(["scan", "reset"])


def test_a_run_is_a_record_that_reads_back() -> None:
    figure = make_figure("scan", "scan-memory", GOALS["scan"]["scan-memory"], [120e6], note="one layer")
    run = BenchRun(
        date="2026-10-12",
        cores=2,
        memory_bytes=25_000_000_000,
        kernel="6.1.0",
        python="3.11.7",
        system="Linux x86_64",
        load_before=0.5,
        load_after=2.25,
        figures=(figure,),
    )
    assert BenchRun.load(run.to_bytes(), "bench.json") == run
    assert describe_run(run) == (
        "2026-10-12, Linux x86_64, kernel 6.1.0, 2 cores, 25 GB, Python 3.11.7, load 0.5 before and 2.2 after"
    )
