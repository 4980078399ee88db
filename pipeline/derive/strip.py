"""From a verdict to work: which layers are rewritten, without which paths. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from pipeline.scan import gitfiles, tar
from pipeline.scan.inventory import load_inventory
from pipeline.scan.record import ImageScan, LayerScan, LeakKind


@dataclass(frozen=True)
class StripPlan:
    """By layer digest, the paths to drop (with all below them). Layers that are not named keep their digest.

    `history` are the indexes of image config history entries to clean.
    """

    layers: Mapping[str, frozenset[bytes]]
    history: tuple[int, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Nothing to do."""
        return not self.layers and not self.history


def plan_strip(
    scan: ImageScan,
    layers: Sequence[LayerScan],
    repositories: Mapping[str, frozenset[str] | None],
    kinds: frozenset[LeakKind] = frozenset(get_args(LeakKind)),
) -> StripPlan:
    """Drop every finding of these kinds, and every repository that is rebuilt, out of every layer.

    `repositories` maps the path of each rebuilt repository to the tracked paths that its new layer brings again (others
    in the work tree stay), or to None when the whole folder goes. A finding inside any other git folder takes that
    folder with it: half a store is of no use. A layer that hides data after its end is planned with no paths: writing
    it anew leaves that out.
    """
    replaced = _replaced(repositories)
    links = {layer.layer: _names(layer) for layer in layers}
    dropped: dict[str, set[bytes]] = {}
    hiding = {leak.layer for leak in scan.leaks if leak.layer and not leak.path and leak.kind in kinds}
    for leak in scan.leaks:
        if leak.layer and leak.kind in kinds:
            entry = tar.undisplay(leak.entry)
            dropped.setdefault(leak.layer, set()).update(links[leak.layer].get(entry, (entry,)))
            if (store := gitfiles.store_of(entry)) and store != entry and leak.kind != "fixture":
                for layer in layers:
                    dropped.setdefault(layer.layer, set()).add(store)
    for layer in layers:
        dropped.setdefault(layer.layer, set()).update(replaced)
    present = {layer.layer: _present(layer, dropped[layer.layer]) for layer in layers}
    history = {int(leak.path.rpartition("/")[2]) for leak in scan.leaks if leak.path.startswith("config/history/")}
    needed = {digest: paths for digest, paths in present.items() if paths or digest in hiding}
    return StripPlan(needed, tuple(sorted(history)))


def _replaced(repositories: Mapping[str, frozenset[str] | None]) -> set[bytes]:
    paths: set[bytes] = set()
    for repository, tracked in repositories.items():
        top = repository.encode("utf-8", "surrogateescape")
        if tracked is None:
            paths.add(top)
        else:
            paths.add(top + b"/.git")
            paths.update(top + b"/" + path.encode("utf-8", "surrogateescape") for path in tracked)
    return paths


def _names(layer: LayerScan) -> dict[bytes, set[bytes]]:
    """Every name of a file that has several, by each of them."""
    groups: dict[bytes, set[bytes]] = {}
    for seen in load_inventory(layer.inventory, layer.layer):
        if seen.kind == "1":
            target = tar.normal(seen.link)
            group = groups.setdefault(target, {target})
            group.add(seen.path)
            groups[seen.path] = group
    return groups


def _present(layer: LayerScan, paths: set[bytes]) -> frozenset[bytes]:
    """Those of the paths that this layer has, itself or something below."""
    found: set[bytes] = set()
    for seen in load_inventory(layer.inventory, layer.layer):
        path = seen.path
        while path and seen.kind != "content":
            if path in paths:
                found.add(path)
            path = path.rpartition(b"/")[0]
    return frozenset(found)
