"""Texts that must not be in an image, found whole, reformatted, or as a part of another file.

A fingerprint is made of a text's distinctive lines: long enough, of more than a few different characters, and absent
from ordinary texts. The search has two steps. The fast one looks for a few short triggers (picked so that every
512 bytes of distinctive text have one) and compares the bytes after each with a set of anchors; anchors lie inside
lines, so line ends, indentation and diff marks do not hide them. Only where an anchor fits are whole lines compared.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from pipeline.scan.buffer import Buffer, digest_of_pieces

Forbidden = Literal["fixture", "future"]
REGION_BYTES = 1024
ANCHOR_BYTES = 20
LINE_BYTES = 12
_COVER_BYTES = 256
_TRIGGER_BYTES = 3
_DIFF_MARK = re.compile(rb"^[-+ >|!]{1,2}(?=\S|\s)")
_BINARY_SHARE = 3
_WINDOW_BYTES, _OVERLAP_BYTES = 8 << 20, 64 << 10


@dataclass(frozen=True)
class Fingerprint:
    """One forbidden text. `lines` are its distinctive normal lines in order; digests are SHA-256 hex."""

    label: str
    kind: Forbidden
    size: int
    sha256: str
    normal_sha256: str
    lines: tuple[bytes, ...]

    @cached_property
    def line_set(self) -> frozenset[bytes]:
        """For membership."""
        return frozenset(self.lines)

    @cached_property
    def distinctive_bytes(self) -> int:
        """Bytes of the different distinctive lines."""
        return sum(map(len, self.line_set))

    @property
    def needed_bytes(self) -> int:
        """How much of it makes a find: a region, or nearly all of a text that is shorter than one."""
        return min(REGION_BYTES, self.distinctive_bytes * 4 // 5)


@dataclass(frozen=True)
class Match:
    """A forbidden text in a file, and how it was recognised."""

    label: str
    kind: Forbidden
    how: str


def make_fingerprint(label: str, kind: Forbidden, data: bytes, ordinary: frozenset[bytes]) -> Fingerprint:
    """Fingerprint a text; lines in `ordinary` (normal lines of texts that may be anywhere) are not distinctive."""
    lines = tuple(line for line in normal_lines(data) if _is_distinctive(line) and line not in ordinary)
    return Fingerprint(label, kind, len(data), hashlib.sha256(data).hexdigest(), normal_digest(data), lines)


def normal_lines(data: bytes) -> list[bytes]:
    """Lines without white space and quotes around them (bytecode has docstrings without), empty ones left out."""
    return [line for raw in data.splitlines() if (line := raw.strip().strip(b"\"'"))]


def normal_digest(data: bytes) -> str:
    """SHA-256 of the normal lines: line ends, indentation and blank lines do not count."""
    return hashlib.sha256(b"\n".join(normal_lines(data))).hexdigest()


class Matcher:
    """Looks for all fingerprints at once. Make one and use it for many files."""

    def __init__(self, fingerprints: Sequence[Fingerprint]) -> None:
        self._by_digest = {one.sha256: one for one in fingerprints}
        self._by_normal = {one.normal_sha256: one for one in fingerprints if one.lines}
        self._sizes = {one.size for one in fingerprints if one.size}
        self._texts = [one for one in fingerprints if one.needed_bytes >= 160 or len(one.line_set) >= 8]
        self._triggers = choose_triggers(self._texts)
        self._anchors = frozenset(
            line[at : at + ANCHOR_BYTES]
            for one in self._texts
            for line in one.line_set
            for at in _trigger_places(line, self._triggers)
        )
        self._owners: dict[bytes, list[Fingerprint]] = {}
        for one in self._texts:
            for line in one.line_set:
                self._owners.setdefault(line, []).append(one)

    def match(self, data: Buffer) -> list[Match]:
        """Everything forbidden that this content is, or holds at least a distinctive region of."""
        if len(data) in self._sizes and (whole := self._by_digest.get(_sha256(data))):
            return [Match(whole.label, whole.kind, "same bytes")]
        if not self._triggers:
            return []
        found = [match for window in _windows(data) if self._has_anchor(window) for match in self._compare(window)]
        return list({match.label: match for match in found}.values())

    def _has_anchor(self, data: bytes) -> bool:
        anchors = self._anchors
        for trigger in self._triggers:
            at = data.find(trigger)
            while at >= 0:
                if data[at : at + ANCHOR_BYTES] in anchors:
                    return True
                at = data.find(trigger, at + 1)
        return False

    def _compare(self, data: bytes) -> list[Match]:
        lines = normal_lines(data)
        same = self._by_normal.get(hashlib.sha256(b"\n".join(lines)).hexdigest())
        if same is not None:
            return [Match(same.label, same.kind, "same text, formatted otherwise")]
        is_binary = b"\0" in data
        present = (line for line in self._owners if line in data) if is_binary else _variants(lines)
        found: dict[Fingerprint, set[bytes]] = {}
        for line in present:
            for owner in self._owners.get(line, ()):
                found.setdefault(owner, set()).add(line)
        matches = []
        for owner, common in found.items():
            total = sum(map(len, common))
            # compiled files keep only the strings of a text
            if total >= (owner.needed_bytes // _BINARY_SHARE if is_binary else owner.needed_bytes):
                matches.append(Match(owner.label, owner.kind, f"{total} distinctive bytes of it inside"))
        return sorted(matches, key=lambda match: match.label)


def choose_triggers(fingerprints: Sequence[Fingerprint]) -> tuple[bytes, ...]:
    """A small set of short byte strings of which every stretch of distinctive lines holds at least one, greedily."""
    stretches = [stretch for one in fingerprints for stretch in _stretches(one.lines)]
    grams = [_grams(stretch) for stretch in stretches]
    frequency: Counter[bytes] = Counter()
    for stretch in grams:
        frequency.update(stretch)
    chosen: list[bytes] = []
    open_ = [stretch for stretch in grams if stretch]
    while open_:
        covers = Counter(gram for stretch in open_ for gram in stretch)
        best = min(covers, key=lambda gram: (-covers[gram] / _cost(gram, frequency[gram], len(grams)), gram))
        chosen.append(best)
        open_ = [stretch for stretch in open_ if best not in stretch]
    return tuple(chosen)


def _cost(gram: bytes, count: int, total: int) -> float:
    """A trigger costs one pass over the content, and one look-up for each time that it occurs in ordinary text."""
    rare = sum(byte in _RARE for byte in gram)
    return 1.0 + 6.0 * count / max(total, 1) / (1 + 3 * rare)


_RARE = frozenset(b"JQXZVKYWjqxzkvwUOHBGP[]{}%&!?@$^~<>|;+*0123456789")


def _stretches(lines: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Consecutive lines that can hold an anchor, about 256 bytes a stretch."""
    stretch: list[bytes] = []
    for line in lines:
        if len(line) >= ANCHOR_BYTES:
            stretch.append(line)
        if sum(map(len, stretch)) >= _COVER_BYTES:
            yield stretch
            stretch = []
    if stretch:
        yield stretch


def _grams(stretch: Sequence[bytes]) -> set[bytes]:
    width = _TRIGGER_BYTES
    return {line[at : at + width] for line in stretch for at in range(len(line) - ANCHOR_BYTES + 1)}


def _trigger_places(line: bytes, triggers: Iterable[bytes]) -> Iterator[int]:
    for trigger in triggers:
        at = line.find(trigger)
        while 0 <= at <= len(line) - ANCHOR_BYTES:
            yield at
            at = line.find(trigger, at + 1)


def _variants(lines: Sequence[bytes]) -> Iterator[bytes]:
    """Lines, and lines without a diff mark or quoting before them."""
    for line in lines:
        yield line
        if line[:1] in b"+->|!":
            yield _DIFF_MARK.sub(b"", line).strip()


def _is_distinctive(line: bytes) -> bool:
    return len(line) >= LINE_BYTES and len(set(line)) >= 8


def _windows(data: Buffer) -> Iterator[bytes]:
    """Pieces that overlap, so that a region lies whole in one of them."""
    if isinstance(data, bytes):
        yield data
        return
    for at in range(0, len(data), _WINDOW_BYTES):
        yield data[at : at + _WINDOW_BYTES + _OVERLAP_BYTES]


def _sha256(data: Buffer) -> str:
    return digest_of_pieces(hashlib.sha256(), data).hex()
