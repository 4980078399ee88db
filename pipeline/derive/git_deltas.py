"""Deltas between versions of one path, for repositories whose packs have none; the same on every machine.

The newest version stays whole and older ones are made from the next newer, as git does, in chains of at most 50. A
delta copies whole lines (tree entries in trees) that the base has and inserts the rest (gitformat-pack, "Deltified
representation").
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipeline.derive.object_store import ObjectStore
from pipeline.scan.objects import ID_BYTES, Format, tree_entries

MAX_DEPTH = 50
_MAX_COPY_BYTES = 0xFFFFFF
_MAX_INSERT_BYTES = 127
_MIN_COPY_BYTES = 8
_TREE_LINE = {size: re.compile(rb"[0-7]+ [^\0]+\0.{%d}" % size, re.S) for size in (20, 32)}


def choose_bases(store: ObjectStore, base_commit: bytes, kept: set[bytes]) -> dict[bytes, bytes]:
    """For every object that is an older version of a path's: the next newer version. Never a cycle, never too deep."""
    bases: dict[bytes, bytes] = {}
    depth: dict[bytes, int] = {}
    for newer, older in _versions(store, base_commit, kept):
        depth.setdefault(newer, 0)
        if older not in depth:
            depth[older] = depth[newer] + 1 if depth[newer] < MAX_DEPTH else 0
            if depth[older]:
                bases[older] = newer
    return bases


def make_delta(base: bytes, target: bytes, kind: str, form: Format) -> bytes:
    """A delta from base to target, both of one kind."""
    id_bytes = ID_BYTES[form]
    out = bytearray(_size(len(base)) + _size(len(target)))
    where: dict[bytes, int] = {}
    at = 0
    for line in _lines(base, kind, id_bytes):
        where.setdefault(line, at)
        at += len(line)
    pending = bytearray()
    start = end = 0  # of the copy that is being extended
    for line in _lines(target, kind, id_bytes):
        if end > start and base.startswith(line, end) and not pending:
            end += len(line)
            continue
        if end > start:
            out += _copies(start, end)
            start = end = 0
        found = where.get(line)
        if found is not None and len(line) >= _MIN_COPY_BYTES:
            out += _inserts(pending)
            pending.clear()
            start, end = found, found + len(line)
        else:
            pending += line
    return bytes(out + _copies(start, end) + _inserts(pending))


def _versions(store: ObjectStore, base_commit: bytes, kept: set[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Pairs of newer and older objects of one path, newest commits first."""
    seen = {base_commit}
    queue = [base_commit]
    done: set[tuple[bytes, bytes]] = set()
    for commit in queue:  # grows while it is walked: breadth first
        tree, *parents = store.graph.objects[commit].links
        for parent in parents:
            if parent not in kept:
                continue
            yield from _pairs(store, tree, store.graph.objects[parent].links[0], done)
            if parent not in seen:
                seen.add(parent)
                queue.append(parent)


def _pairs(
    store: ObjectStore, newer: bytes, older: bytes, done: set[tuple[bytes, bytes]]
) -> Iterator[tuple[bytes, bytes]]:
    waiting = [(newer, older)]
    while waiting:
        pair = waiting.pop()
        if pair[0] == pair[1] or pair in done:
            continue
        done.add(pair)
        yield pair
        if store.graph.objects[pair[0]].kind == "tree":
            waiting += _entry_pairs(store, *pair)


def _entry_pairs(store: ObjectStore, newer: bytes, older: bytes) -> Iterator[tuple[bytes, bytes]]:
    before = {entry.name: entry for entry in tree_entries(store.read(older), store.form)}
    for entry in tree_entries(store.read(newer), store.form):
        other = before.get(entry.name)
        if other is None or other.id == entry.id:
            continue
        known, known_other = store.graph.objects.get(entry.id), store.graph.objects.get(other.id)
        if known is not None and known_other is not None and known.kind == known_other.kind:
            yield entry.id, other.id


def _lines(data: bytes, kind: str, id_bytes: int) -> list[bytes]:
    return _TREE_LINE[id_bytes].findall(data) if kind == "tree" else data.splitlines(keepends=True)


def _copies(start: int, end: int) -> bytes:
    out = bytearray()
    while start < end:
        count = min(end - start, _MAX_COPY_BYTES)
        code, rest = 0x80, bytearray()
        for bit, octet in enumerate(start.to_bytes(4, "little")):
            if octet:
                code |= 1 << bit
                rest.append(octet)
        for bit, octet in enumerate(count.to_bytes(3, "little")):
            if octet:
                code |= 0x10 << bit
                rest.append(octet)
        out.append(code)
        out += rest
        start += count
    return bytes(out)


def _inserts(pending: bytes | bytearray) -> bytes:
    out = bytearray()
    for at in range(0, len(pending), _MAX_INSERT_BYTES):
        piece = pending[at : at + _MAX_INSERT_BYTES]
        out.append(len(piece))
        out += piece
    return bytes(out)


def _size(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
