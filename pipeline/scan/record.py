"""The records of a scan: one a layer (cached by layer digest and rules), one an image (evidence)."""

from __future__ import annotations

from typing import Literal

from pipeline.model.digest import Digest
from pipeline.model.record import Record

LeakKind = Literal["future", "fixture", "unrelated", "unreadable"]
LeakClass = Literal["reachable", "protected", "buried"]
CLASSES: tuple[LeakClass, ...] = ("reachable", "protected", "buried")


class LayerLeak(Record):
    """What a layer's own bytes show, whatever the base commit: fixtures, and files that could not be read whole."""

    path: str
    kind: LeakKind
    how: str
    label: str = ""


class LayerScan(Record):
    """One layer. Paths are text as `tar.display` makes it; `inventory` and `graph` are packed tables."""

    layer: Digest
    diff_id: Digest
    compressed_bytes: int
    unpacked_bytes: int
    entries: int
    archives: int
    leaks: tuple[LayerLeak, ...]
    inventory: str
    graph: str
    scanner: str
    rules: Digest


class Leak(Record):
    """One finding of an image: where, what, how it was recognised, and who can get at it.

    Inside archives `path` goes on with `//member`. `objects` are hex ids, at most 32, commits first; `count` says how
    many there are. `layer` is empty for the image config.
    """

    layer: str
    path: str
    kind: LeakKind
    reach: LeakClass
    how: str
    label: str = ""
    objects: tuple[str, ...] = ()
    count: int = 0

    @property
    def entry(self) -> str:
        """The layer's entry, without the members inside."""
        return self.path.partition("//")[0]


class LayerProof(Record):
    """What was looked at in one layer."""

    layer: Digest
    diff_id: Digest
    entries: int
    unpacked_bytes: int
    archives: int
    git_stores: int
    objects_seen: int
    objects_allowed: int
    leaks: int


class ImageScan(Record):
    """The verdict over all layers and the config."""

    scanner: str
    rules: Digest
    base_commits: tuple[str, ...]
    layers: tuple[LayerProof, ...]
    leaks: tuple[Leak, ...]

    def of(self, reach: LeakClass) -> tuple[Leak, ...]:
        """The findings of one class."""
        return tuple(leak for leak in self.leaks if leak.reach == reach)
