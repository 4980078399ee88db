"""HTML by construction: text is escaped unless it is `Markup` already, so nothing from outside can become markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice

from pipeline.report.visible import cut, visible


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


@dataclass(frozen=True)
class Detail:
    """How much a page shows: characters of a passing check's value, of other text, rows of one table (None: all).

    Without `passes`, passing checks are counted rather than listed.
    """

    value_chars: int
    text_chars: int
    rows: int | None
    passes: bool


def join(parts: Iterable[str]) -> Markup:
    """The parts in a row, escaped where they are not Markup."""
    return Markup("".join(part if isinstance(part, Markup) else escape(visible(part)) for part in parts))


def element(name: str, *content: str, **attributes: str | bool | int) -> Markup:
    """`<name attributes>content</name>`. `class_` is class, `aria_label` is aria-label; False leaves one out."""
    return Markup(f"<{name}{_attributes(attributes)}>{join(content)}</{name}>")


def code(text: str) -> Markup:
    """A digest, id or reference."""
    return element("code", text)


@dataclass(frozen=True)
class Column:
    """Of a table; `kind` is a class of the stylesheet: `number`, `wide`, `names`, `word`, or nothing."""

    title: str
    kind: str = ""


def table(
    caption: str,
    columns: Sequence[Column],
    rows: Iterable[Markup],
    detail: Detail,
    where: str,
    class_: str = "",
    count: int | None = None,
) -> Markup:
    """A captioned table that scrolls by itself; rows beyond the detail's limit are counted, with their file.

    `count` is how many rows there are; with it, no more of them are drawn than are shown.
    """
    listed = list(rows if count is None else islice(rows, detail.rows))
    shown, total = listed[: detail.rows], len(listed) if count is None else count
    heads = [element("th", column.title, scope="col", class_=column.kind or False) for column in columns]
    body = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *heads)),
        element("tbody", Markup("\n"), *shown),
        class_=class_ or False,
    )
    region = element("div", body, class_="scroll", tabindex=0, role="group", aria_label=caption)
    if len(shown) == total:
        return region
    return join([region, element("p", f"{total - len(shown):,} more rows are in {where}.", class_="cut")])


def row(head: str, *cells: str, class_: str = "") -> Markup:
    """A row whose first cell is its header. A cell is text, code or `number(…)`."""
    data = [cell if cell.startswith("<td") and isinstance(cell, Markup) else element("td", cell) for cell in cells]
    return join([element("tr", element("th", head, scope="row"), *data, class_=class_ or False), Markup("\n")])


def number(value: int) -> Markup:
    """A cell with a number."""
    return element("td", f"{value:,}", class_="number")


def outcome(word: str) -> Markup:
    """A cell with an outcome: a sign, a word and a colour, never the colour alone."""
    kind, sign = _OUTCOMES.get(word, ("bad", "✗"))
    return element("td", element("span", f"{sign} {word}", class_=f"outcome {kind}"))


_OUTCOMES = {
    "pass": ("good", "✓"),
    "done": ("good", "✓"),
    "excepted": ("warn", "!"),
    "warn": ("warn", "!"),
    "not performed": ("none", "○"),
}


def terms(pairs: Iterable[tuple[str, str]]) -> Markup:
    """A description list."""
    return element("dl", *(part for name, text in pairs for part in (element("dt", name), element("dd", text))))


def items(texts: Iterable[str]) -> Markup:
    """A list; nothing when it is empty."""
    listed = [element("li", text) for text in texts]
    return element("ul", *listed) if listed else Markup("")


def fold(summary: str, *content: str, is_open: bool = False) -> Markup:
    """Content that opens and closes, without a script."""
    return element("details", element("summary", summary), *content, open=is_open)


def short(text: str, detail: Detail, where: str) -> str:
    """Text cut to the detail's limit."""
    return cut(text, detail.text_chars, where)


def _attributes(attributes: dict[str, str | bool | int]) -> str:
    said = []
    for name, value in attributes.items():
        if value is False:
            continue
        name = name.rstrip("_").replace("_", "-")
        said.append(f" {name}" if value is True else f' {name}="{escape(visible(str(value)))}"')
    return "".join(said)
