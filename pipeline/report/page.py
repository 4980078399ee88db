"""report.html: one file that needs nothing else, for people who review a release.

No request leaves it: the policy in its head allows its own stylesheet and script by hash, and nothing more. All of its
content is there without the script, which only filters. The same facts give the same bytes.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from importlib.resources import files

from pipeline.report.changes import Changes
from pipeline.report.facts import ReleaseFacts
from pipeline.report.page_checks import checks_part
from pipeline.report.page_layers import layers_part
from pipeline.report.page_markup import Detail, Markup, element, join
from pipeline.report.page_overview import changes_part, images_part, state_part, verdict_part
from pipeline.report.page_records import packages_part, policies_part, provenance_part, scan_part
from pipeline.report.verdict import headline

MAX_PAGE_BYTES = 1_000_000
MIN_CHECK_BYTES = 160  # of a row, so that no page is drawn that is sure to be too long
# from everything to what fits; each cut says what is missing and which file of the folder has it
DETAILS = (
    Detail(400, 4_000, None, passes=True),
    Detail(160, 1_000, None, passes=True),
    Detail(60, 500, None, passes=True),
    Detail(24, 300, 1_500, passes=True),
    Detail(24, 300, 1_000, passes=False),
    Detail(24, 120, 200, passes=False),
    Detail(24, 80, 50, passes=False),
    Detail(24, 60, 10, passes=False),
    Detail(24, 40, 2, passes=False),
)

Part = Callable[[ReleaseFacts, Detail], Markup]
PARTS: tuple[tuple[str, str, Part], ...] = (
    ("layers", "Layers and sizes", layers_part),
    ("checks", "Checks", checks_part),
    ("packages", "Packages and licences", packages_part),
    ("policies", "Policies", policies_part),
    ("provenance", "Provenance", provenance_part),
    ("scan", "Scan of every layer", scan_part),
    ("state", "What was done", state_part),
)


def render_page(facts: ReleaseFacts, previous: Changes | None = None) -> str:
    """The page, under MAX_PAGE_BYTES of UTF-8: values and tables are shortened as far as that needs, and say so."""
    page = ""
    listed = sum(len(image.checks.results) for image in facts.images)
    for detail in DETAILS:
        if detail.passes and listed * MIN_CHECK_BYTES > MAX_PAGE_BYTES:
            continue
        page = _render(facts, previous, detail)
        if len(page.encode()) < MAX_PAGE_BYTES:
            break
    return page


def _render(facts: ReleaseFacts, previous: Changes | None, detail: Detail) -> str:
    sections = [
        ("verdict", "Verdict", verdict_part(facts, detail)),
        ("images", "Images", images_part(facts, detail)),
        ("changes", "What changed", changes_part(previous, detail)),
        *((name, title, part(facts, detail)) for name, title, part in PARTS),
    ]
    head = element("head", *_head(headline(facts)))
    body = element(
        "body",
        element("a", "Skip to the verdict", href="#verdict", class_="skip"),
        element("header", element("h1", headline(facts)), element("p", _WHAT)),
        element("nav", _contents(sections), aria_label="Contents"),
        element("main", *(_section(*section) for section in sections)),
        element("footer", element("p", _AGAIN)),
        element("script", Markup(_data("page.js"))),
    )
    return f'<!doctype html>\n<html lang="en">{head}{body}</html>\n'


_WHAT = "What this release is, what was checked of it, and how to check it yourself."
_AGAIN = (
    "This page follows from the raw files beside it. nox -s review computes it again, offline, and fails when one byte "
    "of the folder differs."
)


def _head(title: str) -> tuple[Markup, ...]:
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hash('page.css')}; script-src {_hash('page.js')}; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        Markup('<meta name="referrer" content="no-referrer">'),
        Markup('<link rel="icon" href="data:,">'),
        element("title", title),
        element("style", Markup(_data("page.css"))),
    )


def _contents(sections: list[tuple[str, str, Markup]]) -> Markup:
    return element("ul", *(element("li", element("a", title, href=f"#{name}")) for name, title, _ in sections))


def _section(name: str, title: str, content: Markup) -> Markup:
    tools = _FILTERS.get(name, Markup(""))
    heading = element("h2", title, id=f"{name}-title")
    return join([element("section", heading, tools, content, id=name, aria_labelledby=f"{name}-title"), Markup("\n")])


def _filter(name: str, noun: str, only: str = "") -> Markup:
    """Shown by the script only: without it there is nothing to filter with."""
    field = element("label", f"Filter {noun} ", Markup(f'<input type="search" data-of="{name}">'))
    box = element("label", Markup('<input type="checkbox"> '), only) if only else Markup("")
    return element("div", field, box, element("output", ""), class_="filter", hidden=True, data_of=name)


_FILTERS = {
    "checks": _filter("checks", "checks", "only what did not pass"),
    "packages": _filter("packages", "packages"),
}


@cache
def _data(name: str) -> str:
    return files("pipeline.report").joinpath(name).read_text(encoding="utf-8")


def _hash(name: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(_data(name).encode()).digest()).decode()}'"
