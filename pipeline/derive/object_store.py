"""The objects of a repository that an image brought: packs and loose objects, read without git and without its config.

Hooks, config, alternates, grafts, replace refs and reflogs are not read at all. Every object is named by its content.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import NamedTuple

from pipeline.errors import HostileInputError, IntegrityError
from pipeline.scan.buffer import Buffer
from pipeline.scan.graph import Graph, paused_collection
from pipeline.scan.limits import Limits
from pipeline.scan.objects import KINDS, Format, GitObject, Kind, make_object, split_loose
from pipeline.scan.pack import OFS_DELTA, PackEntry, apply_delta, inflate_entry, pack_format, read_pack

OBJECT_BYTES = 1 << 30
_CACHE_BYTES = 32 << 20


class Place(NamedTuple):
    """Where an object is: an entry of a pack, with the id of its delta base, or a loose object's compressed bytes."""

    pack: int
    entry: PackEntry | None
    base: bytes | None = None
    loose: bytes = b""


class ObjectStore:
    """Add packs and loose objects, then read by id. The first place of an object counts."""

    def __init__(self, limits: Limits = Limits()) -> None:  # noqa: B008
        self.graph = Graph()
        self.places: dict[bytes, Place] = {}
        self.packs: list[Buffer] = []
        self.form: Format = "sha1"
        self._limits = limits
        self._cache: dict[bytes, bytes] = {}
        self._cached_bytes = 0

    def add_pack(self, pack: Buffer) -> None:
        """Read a pack; HostileInputError when it is damaged."""
        self.form = pack_format(pack)
        number = len(self.packs)
        self.packs.append(pack)
        at: dict[int, bytes] = {}
        with paused_collection():
            for made, entry, _ in read_pack(pack, self._limits):
                at[entry.start] = made.id
                self.graph.add(made)
                base = (at[entry.base_offset] if entry.type == OFS_DELTA else entry.base_id) or None
                self.places.setdefault(made.id, Place(number, entry, base))

    def add_loose(self, data: bytes, form: Format) -> None:
        """Take a loose object as it lies in a repository."""
        self.form = form
        kind, content = _read_loose(data)
        made = make_object(kind, content, form)
        self.graph.add(made)
        self.places.setdefault(made.id, Place(-1, None, None, data))

    def add_object(self, kind: Kind, content: bytes) -> GitObject:
        """Take an object that is made here; returns it with its id."""
        made = make_object(kind, content, self.form)
        self.graph.add(made)
        loose = zlib.compress(b"%s %d\0" % (kind.encode(), len(content)) + content, 1)
        self.places.setdefault(made.id, Place(-1, None, None, loose))
        return made

    def read(self, one: bytes) -> bytes:
        """An object's content; IntegrityError when it is not here."""
        chain: list[bytes] = []
        current = one
        while (data := self._cache.get(current)) is None:
            place = self._place(current)
            if place.base is None:
                data = self._whole(place)
                break
            chain.append(current)
            current = place.base
        for step in reversed(chain):
            place = self._place(step)
            assert place.entry is not None, "only packed objects have a base"
            data = apply_delta(data, inflate_entry(self.packs[place.pack], place.entry, OBJECT_BYTES), OBJECT_BYTES)
        self._remember(one, data)
        return data

    def missing(self, ids: Iterable[bytes]) -> list[bytes]:
        """Which of the ids are not here, in order."""
        return sorted(one for one in ids if one not in self.places)

    def _place(self, one: bytes) -> Place:
        place = self.places.get(one)
        if place is None:
            raise IntegrityError(f"git object {one.hex()} is not in the repository")
        return place

    def _whole(self, place: Place) -> bytes:
        if place.entry is None:
            return _read_loose(place.loose)[1]
        return inflate_entry(self.packs[place.pack], place.entry, OBJECT_BYTES)

    def _remember(self, one: bytes, data: bytes) -> None:
        if self._cached_bytes > _CACHE_BYTES:
            self._cache.clear()
            self._cached_bytes = 0
        self._cache[one] = data
        self._cached_bytes += len(data)


def _read_loose(data: bytes) -> tuple[Kind, bytes]:
    try:
        stream = zlib.decompressobj()
        plain = stream.decompress(data, OBJECT_BYTES)
    except zlib.error as error:
        raise HostileInputError(f"damaged loose git object: {error}") from error
    kind, size, start = split_loose(plain)
    if len(plain) - start != size or stream.unconsumed_tail or not stream.eof:
        raise HostileInputError("a loose git object of another size than it says")
    assert kind in KINDS, "split_loose gives one of them"
    return kind, plain[start:]
