"""The verdict over an image: which git objects are allowed by topology, and who can reach what is not."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pipeline.model.oci import ImageConfig
from pipeline.scan import gitfiles, tar
from pipeline.scan.graph import Graph, Sighting
from pipeline.scan.inventory import load_inventory
from pipeline.scan.merged import MergedRoot
from pipeline.scan.record import ImageScan, LayerProof, LayerScan, Leak, LeakClass, LeakKind
from pipeline.scan.rules import SCANNER, Rules

SHOWN_OBJECTS = 32
_PLAIN_BYTES = 64  # a smaller plain file may equal a future blob by chance: an empty package file, a version line


def judge_image(layers: Sequence[LayerScan], config: ImageConfig, rules: Rules) -> ImageScan:
    """Judge the scans of all layers, bottom first, against the rules. Pure: the same scans give the same bytes."""
    graphs = [Graph.from_text(layer.graph, layer.layer) if layer.graph else Graph() for layer in layers]
    root = MergedRoot()
    for layer in layers:
        root.add_layer(load_inventory(layer.inventory, layer.layer))
    history = make_history(graphs, rules)
    leaks = [
        leak for index, layer in enumerate(layers) for leak in _layer_leaks(index, layer, graphs[index], history, root)
    ]
    leaks += _config_leaks(config, history, rules)
    proofs = tuple(_proof(layer, graph, history, leaks) for layer, graph in zip(layers, graphs, strict=True))
    return ImageScan(
        scanner=SCANNER,
        rules=rules.digest,
        base_commits=tuple(sorted(base.hex() for base in history.bases)),
        layers=proofs,
        leaks=tuple(sorted(leaks, key=lambda leak: (leak.layer, leak.path, leak.kind, leak.how, leak.label))),
    )


@dataclass
class History:
    """Ids by verdict. `stores` says of each git folder whether it shares history with a base."""

    bases: set[bytes]
    graph: Graph
    allowed: set[bytes]
    future: set[bytes] = field(default_factory=set)
    stores: dict[bytes, bool] = field(default_factory=dict)
    unrelated_allowed: bool = False
    missing_bases: tuple[bytes, ...] = ()

    def is_related(self, store: bytes) -> bool | None:
        """Of the nearest known store at or above this path; None where no store holds objects."""
        while True:
            if store in self.stores:
                return self.stores[store]
            if not store:
                return None
            store = store.rpartition(b"/")[0]

    @cached_property
    def future_hex(self) -> list[str]:
        """Hex ids of the future in order, to look abbreviated ones up. Once everything is decided."""
        return sorted(one.hex() for one in self.future)

    @cached_property
    def plain_blobs(self) -> frozenset[bytes]:
        """Blobs of the future that a plain file cannot equal by chance. Once everything is decided."""
        return frozenset(one for one in self.future if _may_be_plain(self, one))


def make_history(graphs: Sequence[Graph], rules: Rules) -> History:
    """Decide every object of all layers: reachable from a base, future, or of an unrelated repository."""
    whole = Graph()
    sightings = [sighting for graph in graphs for sighting in graph.sightings]
    for graph in graphs:
        whole.merge(graph)
    declared = {bytes.fromhex(commit) for commit in rules.base_commits}
    bases = declared or set(_heads(sightings))
    allowed = whole.reach(bases)
    if rules.ancestor_tags:
        _allow_tags(whole, allowed)
    missing = tuple(base for base in sorted(declared) if whole.objects and base not in whole.objects)
    history = History(bases, whole, allowed, unrelated_allowed=rules.unrelated == "allow", missing_bases=missing)
    history.future = {bytes.fromhex(one) for one in rules.future_objects} - allowed
    _relate(history, sightings)
    return history


def _heads(sightings: Sequence[Sighting]) -> Iterator[bytes]:
    """What each repository's HEAD names, symbolic or not; later layers win."""
    refs: dict[tuple[bytes, str], bytes] = {}
    heads: dict[bytes, bytes | str] = {}
    for sighting in sightings:
        if sighting.how.startswith("packed-refs "):
            refs[sighting.store, sighting.how.partition(" ")[2]] = sighting.ids[0]
        elif sighting.how == "ref":
            name = sighting.path[len(sighting.store) :].lstrip(b"/").decode("utf-8", "replace")
            refs[sighting.store, name] = sighting.ids[0]
        elif sighting.path.rpartition(b"/")[2] == b"HEAD" and sighting.how.startswith(gitfiles.SYMBOLIC):
            heads[sighting.store] = sighting.how[len(gitfiles.SYMBOLIC) :]
        elif sighting.how == "HEAD" and sighting.ids:
            heads[sighting.store] = sighting.ids[0]
    for store, head in heads.items():
        found = refs.get((store, head)) if isinstance(head, str) else head
        if found is not None:
            yield found


def _allow_tags(graph: Graph, allowed: set[bytes]) -> None:
    tags = [made for made in graph.objects.values() if made.kind == "tag" and made.id not in allowed]
    while ready := [tag for tag in tags if tag.links[0] in allowed]:
        allowed.update(tag.id for tag in ready)
        tags = [tag for tag in tags if tag.id not in allowed]


def _relate(history: History, sightings: Sequence[Sighting]) -> None:
    """A store is related when a commit of it is known or follows a known one; without commits, any object counts."""
    held: dict[bytes, set[bytes]] = {}
    for sighting in sightings:
        if sighting.strength == "holds":
            held.setdefault(sighting.store, set()).update(sighting.ids)
    waiting = dict(held)
    while True:
        near = [store for store, ids in waiting.items() if _touches(ids, history)]
        if not near:
            break
        for store in near:
            history.future |= history.graph.reach(waiting.pop(store)) - history.allowed
            history.stores[store] = True
    history.stores.update(dict.fromkeys(waiting, False))


def _touches(ids: set[bytes], history: History) -> bool:
    objects = [history.graph.objects[one] for one in ids]
    leading = [made for made in objects if made.kind in ("commit", "tag")] or [made for made in objects if made.size]
    for made in leading:
        near = (made.id, *(made.links[1:] if made.kind == "commit" else made.links))
        if any(one in history.allowed or one in history.future for one in near):
            return True
    return False


def _layer_leaks(index: int, layer: LayerScan, graph: Graph, history: History, root: MergedRoot) -> Iterator[Leak]:
    def reach(path: bytes) -> LeakClass:
        return root.classify(index, path.partition(tar.INSIDE)[0])

    for own in layer.leaks:
        where = tar.undisplay(own.path)
        yield Leak(layer=layer.layer, path=own.path, kind=own.kind, reach=reach(where), how=own.how, label=own.label)
    grouped: dict[tuple[bytes, str, LeakKind], list[bytes]] = {}
    for sighting in graph.sightings:
        kind, wrong = _judge(sighting, history)
        if wrong:
            how = f"names objects: {sighting.how}" if sighting.strength == "names" else sighting.how
            grouped.setdefault((sighting.path, how.partition(" refs/")[0], kind), []).extend(wrong)
    for seen in load_inventory(layer.inventory, layer.layer) if history.plain_blobs else ():
        if seen.blob in history.plain_blobs:
            grouped.setdefault((seen.path, "the same content as a future blob", "future"), []).append(seen.blob)
    for (path, how, kind), ids in grouped.items():
        yield Leak(
            layer=layer.layer, path=tar.display(path), kind=kind, reach=reach(path), how=how,
            objects=_shown(ids, history), count=len(set(ids)),
        )  # fmt: skip


def _judge(sighting: Sighting, history: History) -> tuple[LeakKind, list[bytes]]:
    related = history.is_related(sighting.store)
    if sighting.how == "patch":
        texts = (one[1:].decode() for one in sighting.ids)
        return "future", [found for text in texts if (found := _by_prefix(text, history.future_hex)) is not None]
    if related is False:
        if history.unrelated_allowed:
            return "unrelated", []
        held = sighting.ids if sighting.strength == "holds" else []
        return "unrelated", [one for one in held if one not in history.allowed]
    if related is None:  # nothing but names here: they count when they are known to be of the future
        return "future", [one for one in sighting.ids if one in history.future]
    return "future", [one for one in sighting.ids if one not in history.allowed]


def _by_prefix(text: str, prefixes: Sequence[str]) -> bytes | None:
    at = bisect_left(prefixes, text)
    return bytes.fromhex(prefixes[at]) if at < len(prefixes) and prefixes[at].startswith(text) else None


def _may_be_plain(history: History, one: bytes) -> bool:
    made = history.graph.objects.get(one)
    return made is None or (made.kind == "blob" and made.size >= _PLAIN_BYTES)


def _shown(ids: Iterable[bytes], history: History) -> tuple[str, ...]:
    order = {"commit": 0, "tag": 1, "tree": 2, "blob": 3}

    def rank(one: bytes) -> tuple[int, bytes]:
        made = history.graph.objects.get(one)
        return order[made.kind] if made else 4, one

    return tuple(one.hex() for one in sorted(set(ids), key=rank)[:SHOWN_OBJECTS])


def _config_leaks(config: ImageConfig, history: History, rules: Rules) -> Iterator[Leak]:
    for base in history.missing_bases:
        yield Leak(
            layer="", path="", kind="unreadable", reach="reachable", count=1, objects=(base.hex(),),
            how="the declared base commit is in no layer, so nothing can be compared with it",
        )  # fmt: skip
    names = {one.label.rpartition("/")[2] for one in rules.fingerprints if one.kind == "fixture"}
    for place, text in config_texts(config):
        wrong = [one for one in gitfiles.hex_ids(text.encode("utf-8", "replace")) if one in history.future]
        if wrong:
            yield Leak(
                layer="", path=place, kind="future", reach="protected", how="names objects: image config",
                objects=_shown(wrong, history), count=len(wrong),
            )  # fmt: skip
        for name in sorted(name for name in names if len(name) >= 6 and name in text):
            yield Leak(
                layer="", path=place, kind="fixture", reach="protected", how="the image config names it", label=name
            )


def config_texts(config: ImageConfig) -> Iterator[tuple[str, str]]:
    """Texts of an image config that anyone can read, with their places."""
    view = config.view
    for index, entry in enumerate(view.history or ()):
        yield f"config/history/{index}", f"{entry.created_by or ''}\n{entry.comment or ''}"
    if view.config is not None:
        for index, variable in enumerate(view.config.env or ()):
            yield f"config/env/{index}", variable
        for label, value in sorted((view.config.labels or {}).items()):
            yield f"config/labels/{label}", value


def _proof(layer: LayerScan, graph: Graph, history: History, leaks: Sequence[Leak]) -> LayerProof:
    holding = [sighting for sighting in graph.sightings if sighting.strength == "holds"]
    seen = {one for sighting in holding for one in sighting.ids}
    allowed = {
        one
        for sighting in holding
        for one in sighting.ids
        if one in history.allowed or (history.unrelated_allowed and history.is_related(sighting.store) is False)
    }
    return LayerProof(
        layer=layer.layer, diff_id=layer.diff_id, entries=layer.entries, unpacked_bytes=layer.unpacked_bytes,
        archives=layer.archives, git_stores=len({sighting.store for sighting in holding}), objects_seen=len(seen),
        objects_allowed=len(allowed), leaks=sum(leak.layer == layer.layer for leak in leaks),
    )  # fmt: skip
