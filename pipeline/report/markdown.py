"""report.md: the same facts as report.html in the same order, for a terminal or a code review.

Checks that passed are counted by area here and listed on the page; every other table is whole.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from pipeline.report.changes import Changes, count_kinds
from pipeline.report.contents import layer_origins, list_inputs, list_packages, list_parameters
from pipeline.report.facts import ImageFacts, ReleaseFacts
from pipeline.report.verdict import (
    RELEASE_TEXT,
    area_of,
    cosign_commands,
    count_outcomes,
    headline,
    reasons,
    release_command,
    release_place,
    remarks,
)
from pipeline.report.visible import as_json, cut, visible
from pipeline.scan.record import Leak

MAX_TEXT_CHARS = 1_000
MAX_CHANGES = 200
_SPECIAL = re.compile(r"([\\`*\[\]|~#])")
_TICKS = re.compile(r"`+")


def render_markdown(facts: ReleaseFacts, previous: Changes | None = None) -> str:
    """The report as text. Everything from outside is escaped: it can be read, and changes nothing around it."""
    return "\n".join(_lines(facts, previous)) + "\n"


def plain(text: str, where: str = "the file") -> str:
    """Text without meaning to Markdown or HTML, on one line."""
    safe = cut(text, MAX_TEXT_CHARS, where).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", safe)


def span(text: str) -> str:
    """A code span, also inside a table and around back ticks; nothing for nothing."""
    safe = visible(text)
    fence = "`" * (1 + max((len(found) for found in _TICKS.findall(safe)), default=0))
    space = " " if safe[:1] == "`" or safe[-1:] == "`" else ""
    return f"{fence}{space}{safe}{space}{fence}".replace("|", "\\|") if safe else ""


def _lines(facts: ReleaseFacts, previous: Changes | None) -> Iterator[str]:
    identity = facts.inputs.target.identity
    yield f"# {plain(headline(facts))}"
    yield ""
    yield f"Signed by {span(identity.subject)}, vouched for by {span(identity.issuer)}."
    yield "Everything below is computed again by `nox -s review`, offline, from the raw files beside this one."
    yield from _list([*reasons(facts), *remarks(facts)])
    yield from _images(facts)
    yield from _changes(previous)
    yield from _sizes(facts)
    yield from _checks(facts)
    yield from _packages(facts)
    yield from _policies(facts)
    yield from _provenance(facts)
    yield from _scan(facts)
    yield from ("", "## What was done", "")
    yield from _table(("what", "state"), [(name, value) for name, value in facts.state.states.items()])


def _list(texts: Sequence[str]) -> Iterator[str]:
    if texts:
        yield ""
        yield from (f"- {plain(text)}" for text in texts)


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Cells are Markdown already; a title that begins with `>` is of numbers, aligned to the right."""
    yield f"| {' | '.join(title.removeprefix('>') for title in titles)} |"
    yield f"| {' | '.join('---:' if title.startswith('>') else '---' for title in titles)} |"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _images(facts: ReleaseFacts) -> Iterator[str]:
    yield from ("", "## Images", "")
    titles = ("image", "manifest digest", ">compressed bytes", "before publication", "after the pull", ">leaks")
    yield from _table(titles, [_image_row(image) for image in facts.images])
    yield from ("", "How to verify them, with cosign 3 in this folder:")
    yield from ("", f"**All of them**: {plain(RELEASE_TEXT)} {span(release_place(facts))}.", "", "```sh")
    yield from (release_command(facts), "```")
    for image in facts.images:
        yield from (
            "",
            f"**{plain(image.id)}**: {plain(image.asked.definition.title)}; {_signed_at(image)}",
            "",
            "```sh",
        )
        yield from cosign_commands(facts, image)
        yield "```"


def _signed_at(image: ImageFacts) -> str:
    times = sorted({found.signed_at for found in image.attestations.values()})
    return f"signed at {plain(', '.join(times))}"


def _image_row(image: ImageFacts) -> tuple[str, ...]:
    agreement, manifest = image.agreement, image.manifest
    before = count_outcomes(agreement.before_passed, agreement.before_failed)
    after = count_outcomes(agreement.after_passed, agreement.after_failed)
    return (
        image.id,
        span(manifest.digest),
        f"{manifest.compressed_bytes:,}",
        before,
        after,
        f"{len(image.scan.leaks):,}",
    )


def _changes(previous: Changes | None) -> Iterator[str]:
    yield from ("", "## What changed", "")
    if previous is None:
        yield "There is no earlier release on this target to compare with."
        return
    yield f"From release {plain(previous.old)} to {plain(previous.new)}."
    for name, listed in previous.groups:
        yield from ("", f"**{name}**: {count_kinds(listed)}")
        if listed:
            yield ""
        for change in listed[:MAX_CHANGES]:
            value = " → ".join(plain(side) for side in (change.before, change.after) if side)
            images = f" in {', '.join(change.images)}" if change.images else ""
            yield f"- {change.kind} {span(change.what)}{': ' if value else ''}{value}{images}"
        if len(listed) > MAX_CHANGES:
            yield f"- and {len(listed) - MAX_CHANGES:,} more, between previous.json and the files here"


def _sizes(facts: ReleaseFacts) -> Iterator[str]:
    sizes = facts.sizes
    yield from ("", "## Layers and sizes", "")
    yield f"All images: {sizes.sum_bytes:,} bytes compressed; shared layers counted once: {sizes.layers_once_bytes:,}."
    for pair in sizes.near_identical:
        yield f"Near-identical layers cost {pair.wasted_bytes:,} bytes: `{pair.first}` and `{pair.second}`."
    origins: dict[str, str] = {}
    for image in facts.images:
        for layer, origin in zip(image.manifest.view.layers, layer_origins(image), strict=True):
            origins.setdefault(layer.digest, origin)
    yield ""
    rows = [
        (span(layer.digest), f"{layer.size:,}", ", ".join(layer.images), plain(origins.get(layer.digest, "")))
        for layer in sizes.layers
    ]
    yield from _table(("layer", ">compressed bytes", "in images", "what the history says"), rows)
    yield ""
    sums = [(each.image, f"{each.compressed_bytes:,}", f"{each.unshared_bytes:,}") for each in sizes.images]
    yield from _table(("image", ">compressed bytes", ">in no other image"), sums)


def _checks(facts: ReleaseFacts) -> Iterator[str]:
    yield from ("", "## Checks")
    for image in facts.images:
        failed, where = image.checks.failed, f"images/{image.id}/checks-after.json"
        after = count_outcomes(len(image.checks.results) - len(failed), len(failed))
        yield from ("", f"**{plain(image.id)}**: {after} after the pull, in full in {span(where)}", "")
        for result in failed:
            sides = (plain(as_json(side), where) for side in (result.expected, result.observed))
            text = "expected {}, observed {}".format(*sides)
            yield f"- {span(result.id)} {result.outcome}: {plain(result.statement)}; {text}"
        for each in image.agreement.disagreements:
            yield f"- {span(each.check)} was {plain(each.before)} before, is {plain(each.after)}"
        passed = Counter(area_of(result.id) for result in image.checks.results if result.outcome == "pass")
        yield from (f"- {span(area)}: {count:,} passed" for area, count in sorted(passed.items()))


def _packages(facts: ReleaseFacts) -> Iterator[str]:
    yield from ("", "## Packages and licences", "")
    rows = [
        (
            *map(plain, (package.name, package.version, package.ecosystem)),
            plain("; ".join(package.licences) or "(states none)"),
            ", ".join(package.images),
        )
        for package in list_packages(facts)
    ]
    yield from _table(("package", "version", "kind", "licences", "in images"), rows)


def _policies(facts: ReleaseFacts) -> Iterator[str]:
    yield from ("", "## Policies", "")
    policies = {policy.id: policy for policy in facts.inputs.policies}
    rows = [
        (each.policy, each.outcome, plain(policies[each.policy].statement), plain(policies[each.policy].rationale))
        for each in facts.verdicts
    ]
    yield from _table(("policy", "verdict", "statement", "rationale"), rows)
    exceptions = [
        f"{policy.id}: excepted until {each.expires} by {each.owner} for {each.digest}: {each.reason}"
        for policy in facts.inputs.policies
        for each in policy.exceptions
    ]
    findings = [
        f"{verdict.policy}: {finding.severity}: {finding.what} ({finding.where})"
        for verdict in facts.verdicts
        for finding in verdict.findings
    ]
    yield from _list([*exceptions, *findings])


def _provenance(facts: ReleaseFacts) -> Iterator[str]:
    yield from ("", "## Provenance")
    for image in facts.images:
        yield from ("", f"**{plain(image.id)}**", "")
        for name, value in list_parameters(image):
            yield f"- {plain(name)}: {plain(value if isinstance(value, str) else as_json(value))}"
    yield ""
    rows = [
        (
            *map(plain, (each.kind, each.name, each.version, each.uri)),
            span(" ".join(each.digests)),
            ", ".join(each.images),
        )
        for each in list_inputs(facts)
    ]
    yield from _table(("kind", "input", "version", "from", "digest", "in images"), rows)


def _scan(facts: ReleaseFacts) -> Iterator[str]:
    yield from ("", "## Scan of every layer")
    counts = (">archives", ">git stores", ">objects seen", ">objects allowed", ">leaks")
    titles = ("layer", ">entries", ">unpacked bytes", *counts)
    for image in facts.images:
        yield from ("", f"**{plain(image.id)}**: {plain(image.scan.scanner)}, rules {span(image.scan.rules)}", "")
        rows = [
            (
                span(layer.layer),
                *(f"{value:,}" for value in (layer.entries, layer.unpacked_bytes, layer.archives, layer.git_stores)),
                *(f"{value:,}" for value in (layer.objects_seen, layer.objects_allowed, layer.leaks)),
            )
            for layer in image.scan.layers
        ]
        yield from _table(titles, rows)
        yield from _list([_leak(leak) for leak in image.scan.leaks])


def _leak(leak: Leak) -> str:
    label = f" ({leak.label})" if leak.label else ""
    return f"{leak.reach} {leak.kind} in {leak.path}{label}: {leak.how}; {max(leak.count, 1):,}"
