"""Exact component credit, and the limits inside which answer bytes become a JSON value."""

import json
import math
import re

MAX_BYTES, MAX_DEPTH, MAX_NODES, CAP = 16_384, 20, 2_048, 0.8
MAX_DIGITS = 400  # of one number: far above any expected value, far below what is slow to convert


class UnacceptableError(ValueError):
    """The answer breaks a limit or is not JSON: it scores 0."""


def grade_components(expected: dict, answer: dict) -> float:
    """1.0 if all components are right; else their share, at most 0.8; 0 unless a right one has substance."""
    if answer.keys() - expected.keys():
        return 0.0
    right = [value for key, value in expected.items() if key in answer and same(value, answer[key])]
    if len(right) == len(expected):
        return 1.0
    return min(CAP, len(right) / len(expected)) if any(map(substantive, right)) else 0.0


def same(left, right) -> bool:
    """JSON equality: 2 is 2.0, true is only true."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return left == right


def substantive(value) -> bool:
    """Whether a non-empty string or a non-zero number is somewhere within."""
    if isinstance(value, (list, dict)):
        return any(map(substantive, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, bool) and bool(value)


def load_answer(raw: bytes) -> dict:
    """Bytes -> JSON object. UnacceptableError for everything else, in time linear in the size."""
    if not 0 < len(raw) <= MAX_BYTES:
        raise UnacceptableError("size")
    try:
        text = raw.decode("utf-8")
        _check_depth(text)
        value = json.loads(text, object_pairs_hook=_unique, parse_int=_int, parse_float=_float, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise UnacceptableError(str(error)) from None
    if not isinstance(value, dict):
        raise UnacceptableError("not an object")
    if _nodes(value) > MAX_NODES:
        raise UnacceptableError("nodes")
    return value


def _check_depth(text):
    """Count brackets outside strings before parsing, so that depth never reaches the parser's stack."""
    depth = 0
    for bracket in re.sub(r'"(?:\\.|[^"\\])*\\?"?|[^][{}"]+', "", text, flags=re.DOTALL):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_DEPTH:
            raise UnacceptableError("depth")


def _unique(pairs):
    value = dict(pairs)
    if len(value) < len(pairs):
        raise UnacceptableError("duplicate key")
    return value


def _int(text):
    if len(text) > MAX_DIGITS:
        raise UnacceptableError("number")
    return int(text)


def _float(text):
    value = float(text) if len(text) <= MAX_DIGITS else math.inf
    if not math.isfinite(value):
        raise UnacceptableError("number")
    return value


def _refuse(text):
    raise UnacceptableError(text)


def _nodes(value) -> int:
    """Values of every kind, the root included; keys are not values."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_nodes, inner))
