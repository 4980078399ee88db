"""Text from outside can be read on the page and in report.md, and is never markup, a link, a script or invisible."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest

from pipeline.model.evidence import Disagreement
from pipeline.model.release import Identity, PolicyException
from pipeline.report.changes import compare_releases
from pipeline.report.facts import ReleaseFacts
from pipeline.report.markdown import render_markdown
from pipeline.report.page import render_page
from pipeline.report.page_markup import Markup, element, join
from pipeline.report.visible import as_json, cut, visible
from pipeline.scan.record import Leak
from tests.fakes.html import Node, read_page
from tests.fakes.reported import DEBIAN, check, component, image, policy, release, verdict

ATTACKS = (
    "<script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    "\"' onmouseover=alert(1) x='",
    "<!-- & &lt; ]]> -->",
    "<a href=javascript:alert(1)>x</a>",
)
TAGS = {
    *("html", "head", "meta", "link", "title", "style", "script", "body", "header", "nav", "main", "footer", "section"),
    *("h1", "h2", "h3", "p", "ul", "li", "a", "div", "span", "code", "pre", "small", "details", "summary", "label"),
    *("dl", "dt", "dd", "table", "caption", "thead", "tbody", "tr", "th", "td", "input", "output", "figure"),
    *("figcaption", "svg", "desc", "defs", "pattern", "rect", "circle", "text"),
}


def hostile(text: str) -> ReleaseFacts:
    """A release with `text` wherever text from outside can stand."""
    leak = Leak(layer=DEBIAN[0], path=text, kind="future", reach="buried", how=text, label=text)
    result = check(0, outcome="fail", text=text).model_copy(update={"id": f"a.{text}.b"})
    inputs = [{"uri": text, "name": text, "digest": {text: text}, "annotations": {"kind": text, "version": text}}]
    exception = PolicyException(digest="sha256:" + "2" * 64, owner=text, reason=text, expires="2026-12-31")
    shown = image(
        "software",
        results=(check(1, text=text), result),
        packages=[component(text, text, text, text)],
        inputs=inputs,
        labels={text: text},
        leaks=(leak,),
        disagreements=(Disagreement(check=text, before=text, after=text),),
        title=text,
    )
    return release(
        shown,
        identity=Identity(subject=text, issuer=text),
        policies=(policy("p", text, (exception,)),),
        verdicts=(verdict("p", "fail", text),),
    )


def page_of(facts: ReleaseFacts) -> Node:
    return read_page(render_page(facts, compare_releases(release(date="2026-09-28"), facts)))


@pytest.mark.parametrize("text", ATTACKS)
def test_nothing_becomes_markup(text: str) -> None:
    page = page_of(hostile(text))
    assert {node.name for node in page.all()} <= TAGS
    assert len(list(page.all("script"))) == len(list(page.all("style"))) == 1
    for node in page.all():
        assert not [name for name in node.attributes if name.startswith("on") or name in ("src", "style")]
        assert str(node.attributes.get("href", "#")).startswith(("#", "data:,"))


@pytest.mark.parametrize("text", ATTACKS)
def test_it_can_be_read_where_it_stands(text: str) -> None:
    page = page_of(hostile(text))
    parts = ("verdict", "images", "changes", "checks", "packages", "policies", "provenance", "scan")
    for name in parts:
        assert text in page.one("section", id=name).text, name


@pytest.mark.parametrize("text", ATTACKS)
def test_the_structure_is_that_of_a_harmless_release(text: str) -> None:
    """Every element except the ones around values (a value's kind groups inputs and packages)."""
    harmless, attacked = (page_of(hostile(value)) for value in ("harmless", text))
    assert [node.name for node in attacked.all()] == [node.name for node in harmless.all()]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x00b", "a\\u{0}b"),
        ("a\x1b[31mb", "a\\u{1b}[31mb"),
        ("user\u202egnp.exe", "user\\u{202e}gnp.exe"),
        ("a\u2028b", "a\\u{2028}b"),
        ("zero\u200bwidth", "zero\\u{200b}width"),
        ("two\nlines", "two\\u{a}lines"),
        ("half \ud800", "half \\u{d800}"),
        ("plain ü 日本 ✓", "plain ü 日本 ✓"),
    ],
)
def test_what_cannot_be_seen_is_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert element("p", text) == f"<p>{shown}</p>"


def test_a_page_with_invisible_text_has_none() -> None:
    page = render_page(hostile("a\x1b\x00\u202e\u200b\u2066b"))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", page)


def test_text_joined_to_markup_is_text_again() -> None:
    assert join([Markup("<b>"), "<i>"]) == "<b>&lt;i&gt;"
    assert element("p", Markup("<b></b>") + "<i>") == "<p>&lt;b&gt;&lt;/b&gt;&lt;i&gt;</p>"
    assert element("p", title='"><script>') == '<p title="&quot;&gt;&lt;script&gt;"></p>'


def test_a_cut_never_hides_that_it_is_one() -> None:
    assert cut("abcdef", 4, "x.json") == "abcd… [2 more characters in x.json]"
    assert cut("abcd", 4, "x.json") == "abcd"
    assert as_json({"b": 1, "a": "<\n>"}) == '{"a": "<\\n>", "b": 1}'


def test_commands_are_quoted_for_a_shell() -> None:
    page = page_of(hostile("x; rm -rf ~ $(id) `id` 'q'"))
    command = next(page.one("section", id="images").all("pre")).text
    assert "--certificate-identity 'x; rm -rf ~ $(id) `id` '\"'\"'q'\"'\"'' --certificate-oidc" in command


def test_the_policy_allows_exactly_the_inline_style_and_script() -> None:
    page = page_of(release())
    policy_text = str(page.one("meta", **{"http-equiv": "Content-Security-Policy"}).attributes["content"])
    rules = dict(rule.strip().split(" ", 1) for rule in policy_text.split(";"))
    assert rules == {
        "default-src": "'none'",
        "img-src": "data:",
        "style-src": hash_of(page.one("style").text),
        "script-src": hash_of(page.one("script").text),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert "</" not in page.one("script").text


def hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@pytest.mark.parametrize("text", ATTACKS)
def test_markdown_has_no_html(text: str) -> None:
    without_blocks = re.sub(r"(?ms)^```sh$.*?^```$", "", render_markdown(hostile(text)))
    outside_code = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", without_blocks)
    assert "<" not in outside_code
    assert "](" not in outside_code


def test_markdown_tables_keep_their_cells_and_lines_their_number() -> None:
    lines = [len(render_markdown(hostile(text)).splitlines()) for text in ("harmless", "a | b\n# c\n- `d` ``e``")]
    assert lines[0] == lines[1]
    tables = [line for line in render_markdown(hostile("a | b `c|d`")).splitlines() if line.startswith("|")]
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in tables}
    assert widths == {3, 4, 5, 6, 7, 9}
