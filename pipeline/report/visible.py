"""Text from outside made safe to look at: nothing invisible, nothing that reorders, and cuts that say what was cut."""

from __future__ import annotations

import json

from pydantic import JsonValue


def visible(text: str) -> str:
    """The text with every control, format and odd space character written as `\\u{hex}`: one line, in reading order."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else f"\\u{{{ord(char):x}}}" for char in text)


def cut(text: str, limit_chars: int, where: str) -> str:
    """At most `limit_chars` of the visible text; a cut says how many are missing and in which file they are."""
    if len(text) <= limit_chars:
        return visible(text)
    return f"{visible(text[:limit_chars])}… [{len(text) - limit_chars:,} more characters in {where}]"


def as_json(value: JsonValue) -> str:
    """A value on one line, keys sorted: the same value is the same text."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
