"""The figures as plain text: measured, to be reached, published; and what each was compared with."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.bench.figures import Figure, judge, ratio
from pipeline.bench.goals import GOALS, Goal, Unit

_WIDTHS = (60, 22, 14, 32)


def render_group(group: str, figures: Sequence[Figure]) -> str:
    """A table of one group, every figure with the lines that explain it."""
    lines = [_row(f"{group}", "measured", "to reach", "published images"), "-" * (sum(_WIDTHS) + 6)]
    for figure in figures:
        lines += _lines(figure, GOALS[group][figure.id])
    return "\n".join(lines)


def render_outcome(figures: Sequence[Figure]) -> str:
    """One line that sums up."""
    outcomes = [judge(figure, GOALS[figure.group][figure.id]) for figure in figures]
    reached, short, absent = (outcomes.count(one) for one in ("reached", "falls short", "not measured"))
    return f"{reached} reached, {short} fall short, {absent} not measured here, {outcomes.count('to know')} to know"


def format_value(value: float, unit: Unit) -> str:
    """Three digits of small values, whole numbers of large ones, with separators; the unit unless it is counted."""
    whole = unit in ("bytes", "count") or abs(value) >= 100
    text = f"{value:,.0f}" if whole else f"{value:.3g}"
    return text if unit in ("bytes", "count") else f"{text} {unit}"


def _lines(figure: Figure, goal: Goal) -> list[str]:
    measured = "not measured" if figure.value is None else format_value(figure.value, goal.unit)
    lines = [_row(goal.text, f"{measured}{_mark(figure, goal)}", _reach(goal), goal.published)]
    if figure.runs > 1 and figure.low is not None and figure.high is not None:
        spread = f"{format_value(figure.low, goal.unit)} to {format_value(figure.high, goal.unit)}"
        lines.append(f"    median of {figure.runs}, {spread}")
    lines += [f"    {label}{text}" for label, text in (("beside: ", figure.reference), ("", figure.note)) if text]
    return lines


def _mark(figure: Figure, goal: Goal) -> str:
    if judge(figure, goal) != "falls short":
        return ""
    times = ratio(figure, goal)
    return "  SHORT" if times is None else f"  SHORT x{times:.2f}"


def _reach(goal: Goal) -> str:
    if goal.reach is None:
        return "-"
    return f"{'>=' if goal.higher else '<='} {format_value(goal.reach, goal.unit)}"


def _row(*cells: str) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, _WIDTHS, strict=True)).rstrip()
