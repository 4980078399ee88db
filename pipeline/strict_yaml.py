"""A strict subset of YAML with the line of every value: what a person wrote is what is read.

Differences from `yaml.safe_load`, each because it has silently changed somebody's meaning: a duplicate key is an error;
only `true`, `false`, `null` and decimal integers become other types than text (`no`, dates and `1.10` stay text, and
strict models then say so); anchors, aliases, merge keys and tags are refused (they hide values and make bombs).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from pydantic import JsonValue

from pipeline.errors import ConfigError

MAX_BYTES = 1 << 20
MAX_DEPTH = 16
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}

Location = tuple[str | int, ...]


@dataclass(frozen=True)
class Document:
    """A parsed file: its value, and the line (from 1) of each value and key by location."""

    path: str
    value: JsonValue
    lines: dict[Location, int]

    def where(self, location: Location) -> str:
        """file:line of a location, or of the nearest part above it that exists."""
        while location and location not in self.lines:
            location = location[:-1]
        return f"{self.path}:{self.lines.get(location, 1)}"


def load_document(raw: bytes, path: str) -> Document:
    """Parse bytes of a YAML file that `path` names in errors; ConfigError with file:line."""
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"file of {len(raw)} bytes; the limit is {MAX_BYTES}", where=path)
    try:
        text = raw.decode("utf-8")
        _refuse_indirection(text, path)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except UnicodeDecodeError as error:
        raise ConfigError("not UTF-8 text", where=f"{path}:{raw[: error.start].count(10) + 1}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"not YAML: {_problem(error)}", where=f"{path}:{_line(error)}") from error
    if node is None:
        raise ConfigError("the file is empty", where=path)
    lines: dict[Location, int] = {}
    return Document(path, _value(node, (), lines, path), lines)


def _refuse_indirection(text: str, path: str) -> None:
    # on the event stream, before composing: an alias bomb is refused before it can grow
    depth = 0
    for event in _events(text):
        line = _line_of(event.start_mark)
        tag = getattr(event, "tag", None)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise ConfigError("anchors and aliases are not accepted", where=f"{path}:{line}", remedy="write it out")
        if tag:
            raise ConfigError(f"tags are not accepted: {tag}", where=f"{path}:{line}", remedy="remove the tag")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise ConfigError(f"nested deeper than {MAX_DEPTH}", where=f"{path}:{line}")


def _events(text: str) -> Iterator[yaml.Event]:
    yield from yaml.parse(text, Loader=yaml.SafeLoader)


def _value(node: yaml.Node, location: Location, lines: dict[Location, int], path: str) -> JsonValue:
    lines.setdefault(location, node.start_mark.line + 1)
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return [_value(child, (*location, index), lines, path) for index, child in enumerate(node.value)]
    result: dict[str, JsonValue] = {}
    for key_node, child in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise ConfigError("a key must be text", where=f"{path}:{line}")
        key = str(key_node.value)
        if key in result:
            what = f"duplicate key {key!r}; first on line {lines[(*location, key)]}"
            raise ConfigError(what, where=f"{path}:{line}", remedy="keep one")
        lines[(*location, key)] = line
        result[key] = _value(child, (*location, key), lines, path)
    return result


def _scalar(node: yaml.ScalarNode) -> JsonValue:
    text = str(node.value)
    if node.style is not None:
        return text
    if text in _WORDS:
        return _WORDS[text]
    return int(text) if _INTEGER.fullmatch(text) else text


def _problem(error: yaml.YAMLError) -> str:
    return str(getattr(error, "problem", None) or error).splitlines()[0]


def _line(error: yaml.YAMLError) -> int:
    return _line_of(getattr(error, "problem_mark", None))


def _line_of(mark: Any) -> int:
    return mark.line + 1 if mark else 1
