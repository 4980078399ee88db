"""What the source history says of the future: ids and texts that a stripped image must not have, even as plain files.

After the strip no layer has the future's objects any more, so a copy in a cache would compare with nothing. The rules
that judge the finished image carry what the source repository still knew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pipeline.derive.fixtures import make_fingerprints
from pipeline.derive.object_store import ObjectStore
from pipeline.derive.repository import RepositorySource
from pipeline.errors import IntegrityError
from pipeline.scan.fingerprint import Fingerprint
from pipeline.scan.objects import tree_entries

TEXT_BYTES = 1 << 20
ORDINARY_BYTES = 256 << 20


@dataclass(frozen=True)
class Future:
    """For `Rules.future_objects` and `Rules.fingerprints`."""

    objects: frozenset[str]
    fingerprints: tuple[Fingerprint, ...] = field(repr=False)


def find_future(source: RepositorySource, base_commit: str) -> Future:
    """Everything in the source that the base commit does not reach.

    A text's lines are distinctive when no blob that the base reaches has them, in any version. IntegrityError when the
    base commit is not there.
    """
    store, base = source.store, bytes.fromhex(base_commit)
    if base not in store.places:
        raise IntegrityError(f"the base commit {base_commit} is not in the repository")
    allowed = store.graph.reach([base])
    future = set(store.places) - allowed
    names = _names(store, future)
    texts = {f"future:{names.get(one, one.hex())}@{one.hex()[:12]}": data for one, data in _texts(store, future)}
    ordinary = (data for _, data in _texts(store, allowed & set(store.places), ORDINARY_BYTES))
    return Future(frozenset(one.hex() for one in future), make_fingerprints(texts, ordinary, "future"))


def _names(store: ObjectStore, future: set[bytes]) -> dict[bytes, str]:
    """The last name of each object in the future's own trees."""
    names: dict[bytes, str] = {}
    for one in sorted(future):
        if store.graph.objects[one].kind == "tree":
            for entry in tree_entries(store.read(one), store.form):
                names[entry.id] = entry.name.decode("utf-8", "backslashreplace")
    return names


def _texts(store: ObjectStore, ids: set[bytes], limit_bytes: int = 1 << 62) -> Iterator[tuple[bytes, bytes]]:
    total = 0
    for one in sorted(ids):
        made = store.graph.objects[one]
        if made.kind == "blob" and 0 < made.size <= TEXT_BYTES:
            data = store.read(one)
            total += len(data)
            if total > limit_bytes:
                return
            if b"\0" not in data:
                yield one, data
