"""The merged root of an image's layers, as the OCI specification says (layer.md, "Whiteouts", "Opaque Whiteout").

It answers one question: what a process with a given user id can do with the file that a layer brought.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pipeline.errors import HostileInputError
from pipeline.scan.inventory import Seen
from pipeline.scan.record import CLASSES, LeakClass
from pipeline.scan.tar import normal

WHITEOUT = b".wh."
OPAQUE = b".wh..wh..opq"
AGENT_ID = 2000


@dataclass
class Node:
    """One name of the merged root. `layer` is the index of the layer that put it there, -1 for implied folders."""

    kind: str = "5"
    mode: int = 0o755
    uid: int = 0
    gid: int = 0
    layer: int = -1
    has_acl: bool = False
    children: dict[bytes, Node] = field(default_factory=dict)


class MergedRoot:
    """Add layers from the bottom up."""

    def __init__(self) -> None:
        self._root = Node()
        self._layers = 0
        self._links: dict[tuple[int, bytes], list[bytes]] = {}

    def add_layer(self, entries: Iterable[Seen]) -> None:
        """Apply whiteouts to what is below, then put the layer's own entries."""
        rows = [entry for entry in entries if entry.kind != "content"]
        for entry in rows:
            if entry.path.rpartition(b"/")[2].startswith(WHITEOUT):
                self._hide(entry.path)
        for entry in rows:
            if not entry.path.rpartition(b"/")[2].startswith(WHITEOUT):
                self._put(entry)
        self._layers += 1

    def classify(self, layer: int, path: bytes) -> LeakClass:
        """`reachable` by the agent, `protected` from it, or `buried` under a later layer; hard links count."""
        names = [path, *self._links.get((layer, path), ())]
        classes = {self._classify(layer, name) for name in names}
        return next(one for one in CLASSES if one in classes)

    def _classify(self, layer: int, path: bytes) -> LeakClass:
        node, searchable = self._root, True
        parts = path.split(b"/") if path else []
        for part in parts:
            if node.kind == "2":
                # below a link of its own time: where a runtime puts it is not for us to guess
                return "buried" if node.layer > layer else "reachable"
            searchable = searchable and _permits(node, 0o1)
            following = node.children.get(part)
            if following is None:
                return "buried"
            node = following
        if node.layer != layer:
            return "buried"
        return "reachable" if searchable and _permits(node, 0o4) else "protected"

    def _hide(self, path: bytes) -> None:
        folder, _, name = path.rpartition(b"/")
        node = self._find(folder)
        if node is None:
            return
        if name == OPAQUE:
            node.children.clear()
        elif not name.startswith(b".wh..wh."):
            node.children.pop(name[len(WHITEOUT) :], None)

    def _put(self, entry: Seen) -> None:
        node = self._root
        folder, _, name = entry.path.rpartition(b"/")
        for part in folder.split(b"/") if folder else ():
            node = node.children.setdefault(part, Node())
        if entry.kind == "1":
            self._link(entry)
        made = Node(entry.kind, entry.mode, entry.uid, entry.gid, self._layers, entry.has_acl)
        if entry.kind == "1" and (target := self._find(_target(entry))) is not None:
            made.kind, made.mode, made.uid, made.gid = target.kind, target.mode, target.uid, target.gid
        if not entry.path:
            made.children = self._root.children
            self._root = made
            return
        before = node.children.get(name)
        if before is not None and entry.kind == "5" and before.kind == "5":
            made.children = before.children
        node.children[name] = made

    def _link(self, entry: Seen) -> None:
        """Remember every name of one file for every other name of it."""
        key = (self._layers, _target(entry))
        group = self._links.setdefault(key, [key[1]])
        group.append(entry.path)
        self._links[(self._layers, entry.path)] = group

    def _find(self, path: bytes) -> Node | None:
        node: Node | None = self._root
        for part in path.split(b"/") if path else ():
            node = node.children.get(part) if node is not None else None
        return node


def _target(entry: Seen) -> bytes:
    try:
        return normal(entry.link)
    except HostileInputError:
        return b""


def _permits(node: Node, bit: int) -> bool:
    """An owner can change the mode, so ownership alone is enough; an ACL may say anything."""
    if node.mode & bit or node.uid == AGENT_ID or node.has_acl:
        return True
    return node.gid == AGENT_ID and bool(node.mode & bit << 3)
