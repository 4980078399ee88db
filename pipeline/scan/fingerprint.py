"""Texts that must not be in an image, found whole, reformatted, or as a part of another file.

A fingerprint is made of a text's distinctive lines: long enough, of more than a few different characters, and absent
from ordinary texts. The search has three steps. An anchor is one line from every 256 bytes of distinctive text. The
fastest step asks whether any of them can be anywhere (`sample`). Where one can, content is split at line feeds, and
each piece looked up among the anchors as they are, reindented, with other line ends, and with the marks of a diff
before them. Only where one fits are all lines compared.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from pipeline.scan.buffer import Buffer, digest_of_pieces
from pipeline.scan.sample import Sample

Forbidden = Literal["fixture", "future"]
REGION_BYTES = 1024
LINE_BYTES = 12
_COVER_BYTES = 256
_HUNK = re.compile(rb"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@", re.M)
# two patterns that begin with one literal each: the engine looks for that byte with memchr
_MARSHAL_SHORT = tuple(re.compile(lead + rb"(?=[\x0c-\xff][\x20-\x7e]{8})") for lead in (b"z", b"\xfa"))
_DIFF_MARK = re.compile(rb"^[-+ >|!]{1,2}(?=\S|\s)")
_BINARY_SHARE = 3
# lines that half of all programs have: no use as a sign, and costly as anchors
_COMMON = re.compile(
    rb"(?:#!|import |from [\w.]+ import |if __name__|@\w+$|# ?(?:SPDX|Copyright|Licen[sc]ed|-\*-)|package |using )"
)
_WINDOW_BYTES, _OVERLAP_BYTES = 8 << 20, 64 << 10


@dataclass(frozen=True)
class Fingerprint:
    """One forbidden text. `lines` are its distinctive normal lines in order, `indented` the same as they stood.

    Digests are SHA-256 hex.
    """

    label: str
    kind: Forbidden
    size: int
    sha256: str
    normal_sha256: str
    lines: tuple[bytes, ...]
    indented: tuple[bytes, ...] = ()

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
        """How much of it makes a find: a region, or nearly all of a text that is shorter than one.

        Of a region's bytes five in eight are counted on: the rest is indentation, line feeds and short lines.
        """
        return min(REGION_BYTES * 5 // 8, self.distinctive_bytes * 4 // 5)


@dataclass(frozen=True)
class Match:
    """A forbidden text in a file, and how it was recognised."""

    label: str
    kind: Forbidden
    how: str


def make_fingerprint(label: str, kind: Forbidden, data: bytes, ordinary: frozenset[bytes]) -> Fingerprint:
    """Fingerprint a text; lines in `ordinary` (normal lines of texts that may be anywhere) are not distinctive.

    Of a patch only the added lines are: its context stands in the repository that it is for.
    """
    pairs = [(line, raw.rstrip()) for raw in _own_lines(data) if (line := _normal(raw))]
    kept = [pair for pair in pairs if _is_distinctive(pair[0]) and pair[0] not in ordinary]
    lines, indented = tuple(line for line, _ in kept), tuple(raw for _, raw in kept)
    digest, normal = hashlib.sha256(data).hexdigest(), normal_digest(data)
    return Fingerprint(label, kind, len(data), digest, normal, lines, indented)


def normal_lines(data: bytes) -> list[bytes]:
    """Lines without white space and quotes around them (bytecode has docstrings without), empty ones left out."""
    return [line for raw in data.splitlines() if (line := _normal(raw))]


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
        self._sample = Sample({line for one in self._texts for line, _ in _anchor_lines(one)})
        self._anchors = frozenset(
            form for one in self._texts for line, raw in _anchor_lines(one) for form in _forms(line, raw)
        )
        self._owners: dict[bytes, list[Fingerprint]] = {}
        for one in self._texts:
            for line in one.line_set:
                self._owners.setdefault(line, []).append(one)

    def match(self, data: Buffer) -> list[Match]:
        """Everything forbidden that this content is, or holds at least a distinctive region of."""
        if len(data) in self._sizes and (whole := self._by_digest.get(_sha256(data))):
            return [Match(whole.label, whole.kind, "same bytes")]
        if not self._anchors:
            return []
        found = [match for window in _windows(data) if self._has_anchor(window) for match in self._compare(window)]
        return list({match.label: match for match in found}.values())

    def _has_anchor(self, data: bytes) -> bool:
        if not self._sample.may_hold(data):
            return False
        if not self._anchors.isdisjoint(data.split(b"\n")):
            return True
        return data[2:4] == b"\r\n" and not self._anchors.isdisjoint(_bytecode_strings(data))

    def _compare(self, data: bytes) -> list[Match]:
        lines = normal_lines(data)
        same = self._by_normal.get(hashlib.sha256(b"\n".join(lines)).hexdigest())
        if same is not None:
            return [Match(same.label, same.kind, "same text, formatted otherwise")]
        found = self._strings_of(data) if b"\0" in data else self._regions_of(lines)
        matches = [
            Match(owner.label, owner.kind, f"{total} distinctive bytes of it inside") for owner, total in found.items()
        ]
        return sorted(matches, key=lambda match: match.label)

    def _strings_of(self, data: bytes) -> dict[Fingerprint, int]:
        """Distinctive bytes by text in binary content. Compiled files keep only the strings, so a part is enough."""
        totals: dict[Fingerprint, int] = {}
        for line, owners in self._owners.items():
            if line in data:
                for owner in owners:
                    totals[owner] = totals.get(owner, 0) + len(line)
        return {owner: total for owner, total in totals.items() if total >= owner.needed_bytes // _BINARY_SHARE}

    def _regions_of(self, lines: Sequence[bytes]) -> dict[Fingerprint, int]:
        """The best region of each text: where its lines are dense, each counts once."""
        texts = [line if line in self._owners else _unmarked(line) for line in lines]
        candidates = {owner for text in texts for owner in self._owners.get(text, ())}
        best = {owner: _best_region(texts, owner) for owner in candidates}
        return {owner: total for owner, total in best.items() if total >= owner.needed_bytes}


def _anchor_lines(one: Fingerprint) -> Iterator[tuple[bytes, bytes]]:
    """The longest line of each stretch of distinctive lines."""
    stretch: list[tuple[bytes, bytes]] = []
    for pair in zip(one.lines, one.indented, strict=True):
        stretch.append(pair)
        if sum(len(line) for line, _ in stretch) >= _COVER_BYTES:
            yield max(stretch, key=lambda pair: len(pair[0]))
            stretch = []
    if stretch:
        yield max(stretch, key=lambda pair: len(pair[0]))


def _forms(line: bytes, raw: bytes) -> Iterator[bytes]:
    """How a line may stand in another file."""
    body = raw.lstrip()
    depth = len(raw.expandtabs()) - len(body)
    indents = {b" " * max(0, depth + shift) for shift in (-8, -4, -2, 0, 2, 4, 8)} | {b"\t" * (depth // 4), b""}
    for text in {line, *(indent + body for indent in (raw[: len(raw) - len(body)], *indents))}:
        for mark in (b"", b"+", b"-", b" ", b"> "):
            yield mark + text
            yield mark + text + b"\r"


def _bytecode_strings(data: bytes) -> Iterator[bytes]:
    """Short strings of marshalled code: a type byte, a length byte, text (CPython's marshal.c, TYPE_SHORT_ASCII)."""
    for pattern in _MARSHAL_SHORT:
        for match in pattern.finditer(data):
            start = match.start() + 2
            yield data[start : start + data[start - 1]]


def _best_region(texts: Sequence[bytes], owner: Fingerprint) -> int:
    """Bytes of the text's lines in the stretch that has most of them and at most twice as many others."""
    score, matched, best = 0.0, 0, 0
    seen: set[bytes] = set()
    for text in texts:
        if text not in owner.line_set:
            score -= len(text) / 2
            if score < 0:
                score, matched = 0.0, 0
                seen.clear()
        elif text not in seen:
            seen.add(text)
            score += len(text)
            matched += len(text)
            best = max(best, matched)
    return best


def _unmarked(line: bytes) -> bytes:
    """A line without a diff mark or quoting before it."""
    return _normal(_DIFF_MARK.sub(b"", line)) if line[:1] in b"+->|!" else line


def _own_lines(data: bytes) -> list[bytes]:
    lines = data.splitlines()
    if _HUNK.search(data) is None:
        return lines
    return [line[1:] for line in lines if line.startswith(b"+") and not line.startswith(b"+++ ")]


def _normal(raw: bytes) -> bytes:
    return raw.strip().strip(b"\"'")


def _is_distinctive(line: bytes) -> bool:
    return len(line) >= LINE_BYTES and len(set(line)) >= 8 and _COMMON.match(line) is None


def _windows(data: Buffer) -> Iterator[bytes]:
    """Pieces that overlap, so that a region lies whole in one of them."""
    if isinstance(data, bytes):
        yield data
        return
    for at in range(0, len(data), _WINDOW_BYTES):
        yield data[at : at + _WINDOW_BYTES + _OVERLAP_BYTES]


def _sha256(data: Buffer) -> str:
    return digest_of_pieces(hashlib.sha256(), data).hex()
