"""A page as a reader of HTML sees it: strictly nested elements, each with its attributes and text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "input"}


@dataclass
class Node:
    """An element; `children` are elements and texts in order."""

    name: str
    attributes: dict[str, str | None] = field(default_factory=dict)
    children: list[Node | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text below."""
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def all(self, *names: str) -> Iterator[Node]:
        """Elements below with one of these names (every one when none is given), in document order."""
        for child in self.children:
            if isinstance(child, Node):
                if not names or child.name in names:
                    yield child
                yield from child.all(*names)

    def one(self, name: str, **attributes: str) -> Node:
        """The only element with this name and these attributes."""
        found = [
            node
            for node in self.all(name)
            if all(node.attributes.get(key.rstrip("_")) == value for key, value in attributes.items())
        ]
        assert len(found) == 1, f"{len(found)} elements {name} {attributes}"
        return found[0]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("document")
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute occurs twice in <{tag}>"
        node = Node(tag, dict(attrs))
        self._open[-1].children.append(node)
        if tag not in VOID:
            self._open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].name == tag, f"</{tag}> closes <{self._open[-1].name}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def read_page(text: str) -> Node:
    """AssertionError unless every element is closed in order, and attributes occur once."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert reader._open == [reader.root], f"<{reader._open[-1].name}> is not closed"
    return reader.root
