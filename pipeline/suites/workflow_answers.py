"""Answers to send for each case, made from the right one, and what each must score."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import JsonValue

from pipeline.suites.workflow_player import dump, write_file
from pipeline.suites.workflow_rule import has_substance, partial_score, spoil, swap_boolean, with_floats
from pipeline.suites.workflow_spec import WorkflowCase

MAX_ANSWER_BYTES = 16_384
MAX_DEPTH = 20
MAX_NODES = 2_048
_ASIDE = "/tmp/right.json"  # noqa: S108 - in the container

Right = dict[str, JsonValue]


@dataclass(frozen=True)
class Variant:
    """`command` writes the answer into the workspace; `score` is the exact reward that it must get."""

    name: str
    text: str
    score: Callable[[WorkflowCase], float]
    command: Callable[[Right], str]


def variants(case: WorkflowCase) -> tuple[Variant, ...]:
    """All variants that the case has; an answer without a hollow component has no `hollow-right`."""
    return tuple(variant for variant in _VARIANTS if case.hollow or variant.name != "hollow-right")


def key_with_substance(right: Right) -> str:
    """The first component that can earn credit alone."""
    return next(key for key, value in right.items() if has_substance(value))


def _write(change: Callable[[Right], JsonValue]) -> Callable[[Right], str]:
    return lambda right: write_file(dump(change(right)))


def _raw(change: Callable[[bytes], bytes]) -> Callable[[Right], str]:
    return lambda right: write_file(change(dump(right)))


def _only(right: Right, keep: Callable[[str, JsonValue], bool]) -> Right:
    return {key: value if keep(key, value) else spoil(value) for key, value in right.items()}


def _spoil_some(right: Right, count: int) -> Right:
    """Spoil `count` components, never the one that gives the rest its substance."""
    kept = key_with_substance(right)
    spoiled = [key for key in right if key != kept][:count]
    return {key: spoil(value) if key in spoiled else value for key, value in right.items()}


def _replace_one(right: Right, value: JsonValue) -> Right:
    kept = key_with_substance(right)
    return {**right, next(key for key in right if key != kept): value}


def _swap_one(right: Right) -> Right:
    """One component with a boolean as 0 or 1; if none has a boolean, one with a number as a boolean."""
    ordered = sorted(right, key=lambda key: not isinstance(right[key], bool))
    key = next(key for key in ordered if dump(swap_boolean(right[key])) != dump(right[key]))
    return {**right, key: swap_boolean(right[key])}


def _nested(depth: int) -> JsonValue:
    value: JsonValue = []
    for _ in range(depth - 1):
        value = [value]
    return value


def _reversed_text(right: Right) -> str:
    def turn(value: JsonValue) -> JsonValue:
        if isinstance(value, dict):
            return {key: turn(value[key]) for key in reversed(value)}
        return [turn(item) for item in value] if isinstance(value, list) else value

    return write_file(json.dumps(turn(right), indent=1).encode())


def _twice(right: Right) -> str:
    key = next(iter(right))
    return write_file(b"{" + dump({key: spoil(right[key])})[1:-1] + b"," + dump(right)[1:])


def _padded(bytes_total: int) -> Callable[[Right], str]:
    def command(right: Right) -> str:
        data = dump(right)
        return f"{write_file(data)}\nhead -c {bytes_total - len(data)} /dev/zero | tr '\\0' ' ' >> answer.json"

    return command


def _elsewhere(link: str) -> Callable[[Right], str]:
    return lambda right: f"{write_file(dump(right), _ASIDE)}\n{link}"


def _full(_: WorkflowCase) -> float:
    return 1.0


def _zero(_: WorkflowCase) -> float:
    return 0.0


def _wrong(count: int) -> Callable[[WorkflowCase], float]:
    return lambda case: partial_score(case.components, count)


_VARIANTS = (
    Variant("correct", "the right answer scores 1", _full, _write(lambda r: r)),
    Variant("one-wrong", "one wrong component leaves the capped share", _wrong(1), _write(lambda r: _spoil_some(r, 1))),
    Variant("two-wrong", "two wrong components leave their share", _wrong(2), _write(lambda r: _spoil_some(r, 2))),
    Variant("three-wrong", "three wrong components leave their share", _wrong(3), _write(lambda r: _spoil_some(r, 3))),
    Variant(
        "one-missing",
        "a missing component counts as wrong",
        _wrong(1),
        _write(lambda r: {key: r[key] for key in r if key != next(k for k in r if k != key_with_substance(r))}),
    ),
    Variant(
        "one-right",
        "one right component with substance earns its share",
        lambda case: partial_score(case.components, case.components - 1),
        _write(lambda r: _only(r, lambda key, _: key == key_with_substance(r))),
    ),
    Variant(
        "hollow-right",
        "right components without substance alone score 0",
        _zero,
        _write(lambda r: _only(r, lambda _, value: not has_substance(value))),
    ),
    Variant("all-wrong", "an incorrect answer scores 0", _zero, _write(lambda r: _only(r, lambda *_: False))),
    Variant(
        "unknown-key", "an unknown key scores 0 however right the rest is", _zero, _write(lambda r: {**r, "note": "x"})
    ),
    Variant("no-answer", "an episode without an answer scores 0", _zero, lambda _: "true"),
    Variant("boolean-swap", "a boolean is never a number", _wrong(1), _write(_swap_one)),
    Variant("float-numbers", "2.0 equals 2", _full, _write(lambda r: with_floats(r))),
    Variant("key-order", "the order of keys is free at every level", _full, _reversed_text),
    Variant("nan", "a non-finite number scores 0", _zero, _write(lambda r: _replace_one(r, float("nan")))),
    Variant("duplicate-keys", "a duplicate key scores 0 even if the last one is right", _zero, _twice),
    Variant("largest", "16,384 bytes are allowed", _full, _padded(MAX_ANSWER_BYTES)),
    Variant("oversized", "16,385 bytes score 0", _zero, _padded(MAX_ANSWER_BYTES + 1)),
    Variant("deepest", "20 levels are allowed", _wrong(1), _write(lambda r: _replace_one(r, _nested(MAX_DEPTH - 1)))),
    Variant("too-deep", "21 levels score 0", _zero, _write(lambda r: _replace_one(r, _nested(MAX_DEPTH)))),
    Variant(
        "too-many-nodes",
        "more than 2,048 nodes score 0",
        _zero,
        _write(lambda r: _replace_one(r, [0] * (MAX_NODES + 1))),
    ),
    Variant(
        "not-utf8",
        "bytes that are not UTF-8 score 0",
        _zero,
        lambda r: write_file(dump(_replace_one(r, "@")).replace(b'"@"', b'"\xff"')),
    ),
    Variant("empty", "an empty answer scores 0", _zero, _raw(lambda _: b"")),
    Variant("malformed", "an answer cut short scores 0", _zero, _raw(lambda data: data[:-1])),
    Variant("list", "an answer in a list scores 0", _zero, _write(lambda r: [r])),
    Variant(
        "symlink",
        "a symbolic link to the right answer scores 0",
        _zero,
        _elsewhere("ln -s /tmp/right.json answer.json"),
    ),
    Variant("fifo", "a FIFO scores 0 without blocking", _zero, lambda _: "mkfifo answer.json"),
    Variant(
        "directory", "a directory scores 0", _zero, _elsewhere("mkdir answer.json && cp /tmp/right.json answer.json/")
    ),
    Variant(
        "inputs-edited",
        "editing the input files changes nothing",
        _full,
        lambda r: f"for f in *.json INSTRUCTIONS.md; do echo '{{}}' > $f; done\n{write_file(dump(r))}",
    ),
)
