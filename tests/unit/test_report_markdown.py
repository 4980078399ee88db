"""report.md: the facts of report.html in its order, and byte for byte the one that is kept beside the tests."""

from __future__ import annotations

import re
from pathlib import Path

from pipeline.model.evidence import Disagreement
from pipeline.report.changes import Changes, compare_releases
from pipeline.report.facts import ReleaseFacts
from pipeline.report.markdown import plain, render_markdown, span
from pipeline.report.page import render_page
from pipeline.scan.record import Leak
from tests.fakes.html import read_page
from tests.fakes.reported import (
    DEBIAN,
    REPOSITORY,
    RUNTIME,
    SOFTWARE,
    checks,
    component,
    components,
    dependencies,
    image,
    policy,
    release,
    verdict,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "report" / "report.md"


def small() -> tuple[ReleaseFacts, Changes]:
    """A release with something of everything, and what changed."""
    leak = Leak(layer=REPOSITORY[0], path="a/b.pack", kind="future", reach="buried", how="by commit", count=34_791)
    different = Disagreement(check="repair.protocol.reset-0000", before="pass", after="fail")
    first = image(
        "format-code-task-000666",
        (DEBIAN, RUNTIME, REPOSITORY),
        checks(12, failing=1),
        [*components(4), component("silent", "1", "pypi")],
        dependencies(2),
        leaks=(leak,),
        disagreements=(different,),
    )
    second = image("software", (DEBIAN, RUNTIME, REPOSITORY, SOFTWARE), checks(9, "workflow"), components(3))
    policies = (policy("no-fixtures"), policy("no-future-history"))
    facts = release(
        first, second, policies=policies, verdicts=(verdict("no-fixtures"), verdict("no-future-history", "fail"))
    )
    old = release(image("software", (DEBIAN, RUNTIME), checks(8, "workflow"), components(2)), date="2026-09-28")
    return facts, compare_releases(old, facts)


def test_the_report_is_the_golden_one() -> None:
    assert render_markdown(*small()) == GOLDEN.read_text()


def test_sections_are_those_of_the_page_in_its_order() -> None:
    text, page = render_markdown(*small()), read_page(render_page(*small()))
    sections = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert ["Verdict", *sections] == [heading.text for heading in page.all("h2")]
    assert text.startswith(f"# {page.one('h1').text}\n")


def test_what_identifies_things_is_on_both() -> None:
    text, page = render_markdown(*small()), read_page(render_page(*small())).text
    digests = re.compile(r"sha256:[0-9a-f]{64}")
    assert set(digests.findall(text)) <= set(digests.findall(page))
    facts = small()[0]
    for shown in facts.images:
        assert {shown.manifest.digest, *(layer.digest for layer in shown.manifest.view.layers)} <= set(
            digests.findall(text)
        )
        assert all(failed.id in text for failed in shown.checks.failed)
    for fact in ("silent", "(states none)", "lib1_1.1_amd64.deb", "a/b.pack", "still shipped"):
        assert fact in text
        assert fact in page


def test_the_first_release_says_that_it_is() -> None:
    assert "There is no earlier release on this target to compare with." in render_markdown(small()[0])


def test_text_is_escaped_and_code_spans_hold_anything() -> None:
    assert plain("a|b *c* [d](e) <f> `g` # & \n") == r"a\|b \*c\* \[d\](e) &lt;f&gt; \`g\` \# &amp; \\u{a}"
    assert plain("x" * 1_001, "a.json").endswith(r"x… \[1 more characters in a.json\]")
    assert span("a`b``c|d") == "```a`b``c\\|d```"
    assert span("`a`") == "`` `a` ``"
    assert span("") == ""
