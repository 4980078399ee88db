"""What git objects were seen in a layer, where, and what they name: a graph that packs into a cached record.

It is independent of any base commit, so a layer is scanned once and judged for as many bases as there are.
"""

from __future__ import annotations

import base64
import gc
import struct
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from pipeline.errors import StageError
from pipeline.scan.objects import KINDS, GitObject, Kind

Strength = Literal["holds", "names"]


@dataclass
class Sighting:
    """Ids at one place: a file that holds objects (a pack, a loose object) or that names them (a ref, an index).

    `path` is the layer's entry, then `//` and the member for each archive around it. `store` is the git folder that it
    belongs to, or the path itself. `prefix` ids are abbreviated (patches name blobs that way).
    """

    path: bytes
    store: bytes
    how: str
    strength: Strength
    ids: list[bytes] = field(default_factory=list)


@contextmanager
def paused_collection() -> Iterator[None]:
    """No cycle collection while millions of small tuples without cycles are made: a quarter of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Graph:
    """Objects by id, and sightings in the order of the layer."""

    def __init__(self) -> None:
        self.objects: dict[bytes, GitObject] = {}
        self.sightings: list[Sighting] = []

    def add(self, made: GitObject) -> None:
        """Remember an object; the same object may be seen in many places."""
        self.objects.setdefault(made.id, made)

    def merge(self, other: Graph) -> None:
        """Take over the objects of another layer."""
        self.objects.update(other.objects)

    def reach(self, roots: Iterable[bytes]) -> set[bytes]:
        """Every id that the roots reach, named ones that are not here (a shallow boundary, submodules) included."""
        found: set[bytes] = set()
        waiting = list(roots)
        while waiting:
            current = waiting.pop()
            if current in found:
                continue
            found.add(current)
            known = self.objects.get(current)
            if known is not None:
                waiting.extend(link for link in known.links if link not in found)
        return found

    def to_text(self) -> str:
        """The graph as text for a record: zlib over tables, base64."""
        return base64.b64encode(zlib.compress(_encode(self), 1)).decode()

    @classmethod
    def from_text(cls, text: str, where: str) -> Graph:
        """What `to_text` wrote; StageError when it is anything else."""
        try:
            with paused_collection():
                return _decode(zlib.decompress(base64.b64decode(text, validate=True)))
        except (ValueError, IndexError, struct.error, zlib.error) as error:
            raise StageError("damaged graph in a layer's scan", where=where, remedy="remove the cached scan") from error


def _encode(graph: Graph) -> bytes:
    number: dict[bytes, int] = {}
    links, rows = array("I"), bytearray()
    for made in graph.objects.values():
        _number(number, made.id)
        links.extend(_number(number, link) for link in made.links)
        rows += struct.pack("<BIQI", KINDS.index(made.kind), number[made.id], made.size, len(made.links))
    places = bytearray()
    for sighting in graph.sightings:
        numbers = [_number(number, one) for one in sighting.ids]
        links.extend(numbers)
        places += struct.pack("<BI", sighting.strength == "holds", len(numbers))
        for text in (sighting.path, sighting.store, sighting.how.encode()):
            places += struct.pack("<I", len(text)) + text
    if sys.byteorder == "big":
        links.byteswap()
    names = b"".join(bytes([len(one)]) + one for one in number)
    parts = (names, bytes(rows), links.tobytes(), bytes(places))
    return b"".join(struct.pack("<Q", len(part)) + part for part in parts)


def _number(numbers: dict[bytes, int], one: bytes) -> int:
    return numbers.setdefault(one, len(numbers))


def _decode(raw: bytes) -> Graph:
    names_part, rows, links_part, places = _parts(raw)
    names = list(_names(names_part))
    links = array("I")
    links.frombytes(links_part)
    if sys.byteorder == "big":
        links.byteswap()
    graph, at = Graph(), 0
    for kind, one, size, count in struct.iter_unpack("<BIQI", rows):
        own = tuple(names[link] for link in links[at : at + count])
        at += count
        kind_name: Kind = KINDS[kind]
        graph.add(GitObject(names[one], kind_name, size, own))
    for path, store, how, holds, count in _places(places):
        ids = [names[link] for link in links[at : at + count]]
        at += count
        graph.sightings.append(Sighting(path, store, how.decode(), "holds" if holds else "names", ids))
    return graph


def _parts(raw: bytes) -> list[bytes]:
    parts, at = [], 0
    while at < len(raw):
        (length,) = struct.unpack_from("<Q", raw, at)
        parts.append(raw[at + 8 : at + 8 + length])
        at += 8 + length
    if len(parts) != 4 or at != len(raw):
        raise ValueError(at)
    return parts


def _names(part: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(part):
        yield part[at + 1 : at + 1 + part[at]]
        at += 1 + part[at]


def _places(part: bytes) -> Iterator[tuple[bytes, bytes, bytes, int, int]]:
    at = 0
    while at < len(part):
        holds, count = struct.unpack_from("<BI", part, at)
        at += 5
        texts = []
        for _ in range(3):
            (length,) = struct.unpack_from("<I", part, at)
            texts.append(part[at + 4 : at + 4 + length])
            at += 4 + length
        yield texts[0], texts[1], texts[2], holds, count
