"""Referrers where a registry has no API for them: the index under the tag `sha256-<hex>`, as pure functions.

https://github.com/opencontainers/distribution-spec/blob/main/spec.md#referrers-tag-schema
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipeline.errors import HostileInputError, StageError
from pipeline.model.oci import OCI_INDEX, Descriptor, IndexView, Manifest, load_index
from pipeline.model.record import canonical_json
from pipeline.model.reference import Reference

MAX_REFERRERS = 1000
_NEXT = re.compile(r'\s*<([^<>]*)>\s*;\s*rel="?next"?\s*')


def fallback_reference(reference: Reference) -> Reference:
    """Where the index of a digest's referrers is kept: the tag `sha256-<hex>` of its repository."""
    if reference.digest is None:
        raise StageError("referrers belong to a digest, not to a tag", where=str(reference))
    return reference.with_tag(reference.digest.replace(":", "-"))


def referrer_descriptor(manifest: Manifest) -> Descriptor:
    """What an index says of a referrer: artifact type (of the config where it has none) and annotations copied in."""
    view = manifest.view
    return Descriptor(
        mediaType=manifest.media_type,
        digest=manifest.digest,
        size=len(manifest.raw),
        artifactType=view.artifact_type or view.config.media_type,
        annotations=view.annotations,
    )


def sort_referrers(found: Iterable[Descriptor], where: str) -> tuple[Descriptor, ...]:
    """By digest, each once; HostileInputError when there are too many, or two that contradict each other."""
    by_digest: dict[str, Descriptor] = {}
    for descriptor in found:
        known = by_digest.setdefault(descriptor.digest, descriptor)
        if (known.size, known.media_type) != (descriptor.size, descriptor.media_type):
            raise HostileInputError("two entries of one digest differ", where=f"{where}: {descriptor.digest}")
        if len(by_digest) > MAX_REFERRERS:
            raise HostileInputError(f"more than {MAX_REFERRERS} referrers", where=where)
    return tuple(by_digest[digest] for digest in sorted(by_digest))


def load_entries(raw: bytes, media_type: str, where: str) -> tuple[Descriptor, ...]:
    """Entries of a fallback index; StageError when the tag holds something else."""
    if media_type != OCI_INDEX:
        raise StageError(
            f"the tag for referrers holds {media_type}", where=where, remedy="move what is there to another tag"
        )
    return load_index(raw, where).manifests


def make_fallback_index(entries: Iterable[Descriptor], raw: bytes | None, where: str) -> Manifest:
    """An index of `entries`, keeping the other fields of the one that is there (`raw`)."""
    old = load_index(raw, where) if raw else IndexView(schemaVersion=2, manifests=())
    kept = old.model_dump(mode="json", by_alias=True, exclude_none=True)
    listed = [entry.to_json() for entry in sort_referrers(entries, where)]
    return Manifest(canonical_json({**kept, "mediaType": OCI_INDEX, "manifests": listed}), OCI_INDEX)


def load_next(link: str | None, where: str) -> str | None:
    """URL of the next page out of a Link header (RFC 8288); None on the last page."""
    if link is None:
        return None
    match = _NEXT.fullmatch(link)
    if match is None:
        raise HostileInputError("a Link header that is not one next page", where=where)
    return match[1]
