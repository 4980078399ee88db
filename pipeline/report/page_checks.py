"""Check results: what did not pass is open, what passed is folded by area; expected and observed are side by side."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from pipeline.model.finding import CheckResult
from pipeline.report.facts import ImageFacts, ReleaseFacts
from pipeline.report.page_markup import Column, Detail, Markup, code, element, fold, join, outcome, row, short, table
from pipeline.report.verdict import area_of, count_outcomes
from pipeline.report.visible import as_json, cut

COLUMNS = (Column("check"), Column("outcome"), Column("expected"), Column("observed"))


def checks_part(facts: ReleaseFacts, detail: Detail) -> Markup:
    """Every image's checks after the pull, and the checks on which the two runs disagree."""
    return join(_image(image, detail) for image in facts.images)


def _image(image: ImageFacts, detail: Detail) -> Markup:
    agreement = image.agreement
    where = f"images/{image.id}/checks-after.json"
    before = count_outcomes(agreement.before_passed, agreement.before_failed)
    after = count_outcomes(agreement.after_passed, agreement.after_failed)
    return join(
        [
            element("h3", image.id),
            element("p", f"Before publication {before}; after the pull {after}. In full: {where}."),
            *_disagreements(image, detail),
            *_failures(image, detail, where),
            *_passes(image, detail, where),
        ]
    )


def _failures(image: ImageFacts, detail: Detail, where: str) -> Iterator[Markup]:
    failed, caption = image.checks.failed, f"{image.id}: checks that did not pass"
    if failed:
        rows = (_failure(result, detail, where) for result in failed)
        body = table(caption, COLUMNS, rows, detail, where, "checks stack", len(failed))
        yield fold(f"did not pass: {len(failed):,}", body, is_open=True)


def _failure(result: CheckResult, detail: Detail, where: str) -> Markup:
    sides = (code(short(as_json(value), detail, where)) for value in (result.expected, result.observed))
    return row(_name(result, detail, where), outcome(result.outcome), *sides, class_="bad")


def _passes(image: ImageFacts, detail: Detail, where: str) -> Iterator[Markup]:
    passed = sorted((r for r in image.checks.results if r.outcome == "pass"), key=lambda r: (area_of(r.id), r.id))
    for area, group in groupby(passed, key=lambda result: area_of(result.id)):
        listed = list(group)
        summary = f"{area}: {len(listed):,} passed"
        if detail.passes:
            rows = (_pass(result, detail, where) for result in listed)
            yield fold(
                summary,
                table(
                    f"{image.id}, {area}: checks that passed", COLUMNS, rows, detail, where, "checks stack", len(listed)
                ),
            )
        else:
            yield element("p", f"{summary}; listed in {where}.", class_="cut")


def _pass(result: CheckResult, detail: Detail, where: str) -> Markup:
    expected, observed = as_json(result.expected), as_json(result.observed)
    name = _name(result, detail, where)
    if expected == observed:
        both = element("td", code(cut(expected, detail.value_chars, where)), colspan=2)
        return row(name, outcome("pass"), both)
    sides = (code(cut(value, detail.value_chars, where)) for value in (expected, observed))
    return row(name, outcome("pass"), *sides)


def _name(result: CheckResult, detail: Detail, where: str) -> Markup:
    limit = max(detail.value_chars, 80)
    statement = element("small", cut(result.statement, limit, where)) if result.statement else Markup("")
    return join([cut(result.id, 200, where), statement])


def _disagreements(image: ImageFacts, detail: Detail) -> Iterator[Markup]:
    if image.agreement.disagreements:
        columns = [Column("check"), Column("before publication"), Column("after the pull")]
        rows = (
            row(short(each.check, detail, "agreement.json"), each.before, each.after, class_="bad")
            for each in image.agreement.disagreements
        )
        where = f"images/{image.id}/agreement.json"
        yield table(
            f"{image.id}: checks that differ before publication and after the pull", columns, rows, detail, where
        )
