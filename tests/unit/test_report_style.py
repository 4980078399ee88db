"""What a reader with a keyboard, a screen reader, low vision or a phone needs of the page, as far as text shows it."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from pipeline.report.changes import compare_releases
from pipeline.report.page import render_page
from pipeline.scan.record import Leak
from tests.fakes.html import Node, read_page
from tests.fakes.reported import DEBIAN, RUNTIME, checks, components, dependencies, image, policy, release, verdict

CSS = (Path(__file__).parents[2] / "pipeline" / "report" / "page.css").read_text()
TEXT_CONTRAST, SHAPE_CONTRAST = 4.5, 3.0
TEXT = [
    *((text, ground) for text in ("ink", "quiet", "link", "good", "bad", "warn") for ground in ("ground", "surface")),
    *((kind, f"{kind}-ground") for kind in ("good", "bad", "warn", "none")),
    ("own-ink", "own"),
]
SHAPES = [("edge", "surface"), ("edge", "ground"), ("shared", "own"), ("link", "surface")]


def colours(scheme: str) -> dict[str, str]:
    """Custom properties of the light scheme, or of the dark one over them."""
    light, dark = re.findall(r":root \{([^}]*--ground[^}]*--edge[^}]*)\}", CSS)
    found = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", light))
    return found if scheme == "light" else found | dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", dark))


def contrast(one: str, other: str) -> float:
    """WCAG 2.2, relative luminance."""

    def luminance(colour: str) -> float:
        parts = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@cache
def page() -> Node:
    leak = Leak(layer=DEBIAN[0], path="a", kind="future", reach="buried", how="x")
    shown = image(
        "software", results=checks(40, failing=2), packages=components(8), inputs=dependencies(3), leaks=(leak,)
    )
    facts = release(shown, image("b", (DEBIAN, RUNTIME)), policies=(policy("p"),), verdicts=(verdict("p", "fail"),))
    return read_page(render_page(facts, compare_releases(release(date="2026-09-28"), facts)))


def test_the_contrast_formula_is_the_published_one() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=0.001)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("text", "ground"), TEXT)
def test_text_is_readable(scheme: str, text: str, ground: str) -> None:
    found = colours(scheme)
    assert contrast(found[text], found[ground]) >= TEXT_CONTRAST


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("shape", "ground"), SHAPES)
def test_shapes_can_be_told_apart(scheme: str, shape: str, ground: str) -> None:
    found = colours(scheme)
    assert contrast(found[shape], found[ground]) >= SHAPE_CONTRAST


def test_every_colour_is_a_named_one() -> None:
    rules = re.sub(r":root \{[^}]*\}", "", CSS)
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b|rgb|hsl", rules)


def test_the_stylesheet_asks_for_nothing() -> None:
    assert not re.search(r"@import|@font-face|url\((?!#)", CSS)
    assert "@media screen and (prefers-color-scheme: dark)" in CSS  # paper is white
    assert ":focus-visible" in CSS
    assert "@media print" in CSS


def test_headings_go_down_one_step_at_a_time() -> None:
    levels = [int(node.name[1]) for node in page().all("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_landmarks_and_ids() -> None:
    for name in ("header", "nav", "main", "footer"):
        assert len(list(page().all(name))) == 1
    ids = [node.attributes["id"] for node in page().all() if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    for node in page().all():
        for target in str(node.attributes.get("aria-labelledby") or "").split():
            assert target in ids
        href = node.attributes.get("href") or ""
        assert not href.startswith("#") or href[1:] in ids
    assert page().one("html").attributes["lang"] == "en"


def test_every_section_is_in_the_contents() -> None:
    listed = [link.attributes["href"] for link in page().one("nav").all("a")]
    assert listed == [f"#{section.attributes['id']}" for section in page().all("section")]


def test_tables_have_captions_and_scopes() -> None:
    tables = list(page().all("table"))
    assert len(tables) > 15
    for table in tables:
        assert table.one("caption").text
        assert all(head.attributes.get("scope") == "col" for head in table.one("thead").all("th"))
        columns = len(list(table.one("thead").all("th")))
        for row in table.one("tbody").all("tr"):
            cells = [cell for cell in row.children if isinstance(cell, Node)]
            assert cells[0].name == "th"
            assert cells[0].attributes["scope"] == "row"
            assert sum(int(cell.attributes.get("colspan") or 1) for cell in cells) == columns
    captions = [table.one("caption").text for table in tables]
    assert len(captions) == len(set(captions))


def test_what_scrolls_has_a_name_and_takes_the_focus() -> None:
    for node in page().all("div"):
        if node.attributes.get("class") == "scroll":
            assert node.attributes["tabindex"] == "0"
            assert node.attributes["role"] == "group"
            assert node.attributes["aria-label"]


def test_fields_have_labels_and_filters_stay_hidden_without_the_script() -> None:
    fields = list(page().all("input"))
    labelled = [node for label in page().all("label") for node in label.all("input") if label.text.strip()]
    assert fields == labelled
    bars = [node for node in page().all("div") if node.attributes.get("class") == "filter"]
    assert len(bars) == 2
    assert all("hidden" in bar.attributes for bar in bars)


def test_outcomes_have_a_sign_and_a_word() -> None:
    said = {n.text for n in page().all("span") if str(n.attributes.get("class")).startswith("outcome")}
    assert said == {"✓ pass", "✗ fail", "✓ done", "○ not performed"}


def test_labels_of_stacked_cells_are_those_of_the_columns() -> None:
    """On a phone a row is stacked, and the stylesheet names its cells: with the words of the table's head."""
    names = re.findall(r"^  \.([a-z]+) td:nth-child\((\d+)\)::before \{ content: \"([a-z ]+) \"; \}", CSS, re.MULTILINE)
    assert len(names) > 25
    heads = {
        str(table.attributes["class"]).split()[0]: [head.text for head in table.one("thead").all("th")]
        for table in page().all("table")
        if table.attributes.get("class")
    }
    heads["exceptions"] = ["image digest", "owner", "reason", "expires"]
    heads["changes"] = ["what", "change", "before", "after", "in images"]
    for table, index, word in names:
        assert heads[table][int(index) - 1].startswith(word), (table, index, word)
