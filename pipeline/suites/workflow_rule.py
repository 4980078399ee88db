"""The grading rule of the workflow cases, written a second time: what an answer must score against the right one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import JsonValue

from pipeline.suites.scenario import same_json

PARTIAL_CAP = 0.8

Answer = Mapping[str, JsonValue]
_Change = Callable[[JsonValue], JsonValue]


def expected_score(right: Answer, given: Answer) -> float:
    """Environment contract, section 4: exact component credit, capped, and none without substance."""
    if any(key not in right for key in given):
        return 0.0
    earned = [key for key in right if key in given and same_json(right[key], given[key])]
    if len(earned) == len(right):
        return 1.0
    if not any(has_substance(right[key]) for key in earned):
        return 0.0
    return min(PARTIAL_CAP, len(earned) / len(right))


def partial_score(components: int, wrong: int) -> float:
    """Of an answer with `wrong` wrong components out of `components`, one of the right ones having substance."""
    return min(PARTIAL_CAP, (components - wrong) / components)


def has_substance(value: JsonValue) -> bool:
    """Whether a non-empty string or a non-zero number stands anywhere within; true and false are neither."""
    match value:
        case dict():
            return any(has_substance(item) for item in value.values())
        case list():
            return any(has_substance(item) for item in value)
        case bool() | None:
            return False
        case _:
            return value not in ("", 0)


def spoil(value: JsonValue) -> JsonValue:
    """Another value of the same kind that is certainly not equal."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return value + "?"
        case list():
            return [*value, "?"]
        case dict():
            return {**value, "?": 1}
    return "?"


def swap_boolean(value: JsonValue) -> JsonValue:
    """The value with booleans as 0 and 1; where it has none, with the first number as a boolean."""
    changed = _map_scalars(value, lambda item: int(item) if isinstance(item, bool) else item)
    if not same_json(changed, value):
        return changed
    return _map_scalars(value, lambda item: bool(item) if isinstance(item, (int, float)) else item)


def with_floats(value: JsonValue) -> JsonValue:
    """Every whole number as a float that equals it."""
    return _map_scalars(value, _as_float)


def _as_float(item: JsonValue) -> JsonValue:
    exact = isinstance(item, int) and not isinstance(item, bool) and abs(item) < 1 << 53
    return float(item) if exact and isinstance(item, int) else item


def _map_scalars(value: JsonValue, change: _Change) -> JsonValue:
    match value:
        case dict():
            return {key: _map_scalars(item, change) for key, item in value.items()}
        case list():
            return [_map_scalars(item, change) for item in value]
        case _:
            return change(value)
