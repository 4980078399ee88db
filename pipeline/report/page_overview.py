"""The first parts of the page: the verdict, the images and how to verify them, and what changed."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.model.digest import is_digest
from pipeline.report.changes import Change, Changes, count_kinds
from pipeline.report.facts import ImageFacts, ReleaseFacts
from pipeline.report.page_markup import (
    Column,
    Detail,
    Markup,
    code,
    element,
    fold,
    items,
    join,
    number,
    outcome,
    row,
    short,
    table,
    terms,
)
from pipeline.report.verdict import (
    RELEASE_TEXT,
    cosign_commands,
    count_outcomes,
    reasons,
    release_command,
    release_place,
    remarks,
)


def verdict_part(facts: ReleaseFacts, detail: Detail) -> Markup:
    """The verdict, why, and the figures that a reviewer asks for first."""
    identity = facts.inputs.target.identity
    state, sign, text = ("good", "✓", _PASSES) if facts.passed else ("bad", "✗", _REFUSED)
    return element(
        "div",
        element("p", element("span", sign, aria_hidden="true"), f" {text}", class_="headline"),
        items(short(text, detail, "policies.json") for text in reasons(facts)),
        _figures(facts),
        element("p", "Signed by ", code(identity.subject), ", vouched for by ", code(identity.issuer), "."),
        element("h3", "To know") if remarks(facts) else Markup(""),
        items(short(text, detail, "policies.json and state.json") for text in remarks(facts)),
        class_=f"verdict {state}",
    )


def _figures(facts: ReleaseFacts) -> Markup:
    passed = sum(len(image.checks.results) - len(image.checks.failed) for image in facts.images)
    failed = sum(len(image.checks.failed) for image in facts.images)
    disagreements = sum(len(image.agreement.disagreements) for image in facts.images)
    refused = sum(verdict.outcome == "fail" for verdict in facts.verdicts)
    figures = [
        ("images", f"{len(facts.images):,}"),
        ("checks after the pull", count_outcomes(passed, failed)),
        ("differ before and after", f"{disagreements:,}"),
        ("policies that refuse", f"{refused} of {len(facts.verdicts)}"),
        ("leaks found", f"{sum(len(image.scan.leaks) for image in facts.images):,}"),
        ("bytes, layers once", f"{facts.sizes.layers_once_bytes:,}"),
    ]
    pairs = (element("div", element("dt", name), element("dd", value)) for name, value in figures)
    return element("dl", *pairs, class_="figures")


_PASSES = "Every check passed, before publication and after the pull; both runs agree; no policy refuses."
_REFUSED = "This release does not pass:"


def images_part(facts: ReleaseFacts, detail: Detail) -> Markup:
    """A table of all images, then each with its reference, labels and commands."""
    columns = [
        Column("image"),
        Column("manifest digest", "wide"),
        Column("compressed bytes", "number"),
        Column("before publication"),
        Column("after the pull"),
        Column("leaks", "number"),
    ]
    rows = (_image_row(image) for image in facts.images)
    commands = (
        "The commands need cosign 3 and this folder as the working directory; they ask the registry and believe "
        "nothing here but the trusted root."
    )
    return join(
        [
            table("Images and their digests", columns, rows, detail, "evidence.json", "images stack"),
            element("h3", "All images and each image, and how to verify them"),
            element("p", commands),
            element("p", f"All of them: {RELEASE_TEXT} ", code(release_place(facts)), "."),
            element("pre", code(release_command(facts))),
            *(_image(facts, image, detail) for image in facts.images),
        ]
    )


def _image_row(image: ImageFacts) -> Markup:
    agreement = image.agreement
    return row(
        image.id,
        code(image.manifest.digest),
        number(image.manifest.compressed_bytes),
        count_outcomes(agreement.before_passed, agreement.before_failed),
        count_outcomes(agreement.after_passed, agreement.after_failed),
        number(len(image.scan.leaks)),
    )


def _image(facts: ReleaseFacts, image: ImageFacts, detail: Detail) -> Markup:
    definition, config = image.asked.definition, image.config.view.config
    labels = sorted((config.labels or {}).items()) if config else []
    pairs = [
        ("title", definition.title),
        ("pull", code(image.pull.reference)),
        ("tag", code(image.asked.reference)),
        ("base", code(image.asked.base)),
        ("config", code(image.config.digest)),
        ("signed at", ", ".join(sorted({found.signed_at for found in image.attestations.values()}))),
        *((short(name, detail, "config.json"), short(text, detail, "config.json")) for name, text in labels),
    ]
    return fold(
        image.id,
        terms(pairs),
        *(element("pre", code(command)) for command in cosign_commands(facts, image)),
        is_open=len(facts.images) <= 4,
    )


def changes_part(changes: Changes | None, detail: Detail) -> Markup:
    """What changed since the release before, group by group."""
    if changes is None:
        return element("p", "There is no earlier release on this target to compare with.")
    groups = [(name, listed) for name, listed in changes.groups if listed]
    same = [name for name, listed in changes.groups if not listed]
    return join(
        [
            element("p", f"From release {changes.old} to {changes.new}."),
            *(_group(name, listed, detail) for name, listed in groups),
            element("p", f"No difference in: {', '.join(same)}.") if same else Markup(""),
        ]
    )


def _group(name: str, listed: tuple[Change, ...], detail: Detail) -> Markup:
    columns = [Column("what"), Column("change", "word"), Column("before"), Column("after")]
    if any(change.images for change in listed):
        columns.append(Column("in images", "names"))
    limit = Detail(detail.value_chars, detail.text_chars, min(detail.rows or 200, 200), detail.passes)
    body = table(
        f"Changes of {name}",
        columns,
        _change_rows(listed, detail),
        limit,
        "previous.json, beside what is new",
        "changes stack",
    )
    return fold(f"{name}: {count_kinds(listed)}", body, is_open=len(listed) <= 20)


def _change_rows(listed: tuple[Change, ...], detail: Detail) -> Iterator[Markup]:
    signs = {"added": "+ added", "removed": "- removed", "changed": "≠ changed"}
    for change in listed:
        what, *sides = (_value(text, detail) for text in (change.what, change.before, change.after))
        images = (", ".join(change.images),) if any(each.images for each in listed) else ()
        yield row(what, signs[change.kind], *sides, *images)


def _value(text: str, detail: Detail) -> str:
    return code(text) if is_digest(text) else short(text, detail, "previous.json")


def state_part(facts: ReleaseFacts, detail: Detail) -> Markup:
    """What was done and what was not."""
    rows = (row(name, outcome(value)) for name, value in facts.state.states.items())
    return table("States, kept apart", [Column("what"), Column("state")], rows, detail, "state.json")
