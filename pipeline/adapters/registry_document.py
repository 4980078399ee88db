"""What a registry serves as a manifest or an index, checked before anything reads it. Pure."""

from __future__ import annotations

import json

from pipeline.errors import HostileInputError
from pipeline.model.oci import INDEX_TYPES, MANIFEST_TYPES, Descriptor, load_index


def choose_platform(raw: bytes, where: str) -> Descriptor:
    """The one linux/amd64 entry of an index; HostileInputError when there is none or more than one."""
    entries = load_index(raw, where).manifests
    found = [e for e in entries if e.platform and (e.platform.os, e.platform.architecture) == ("linux", "amd64")]
    if len(found) != 1:
        raise HostileInputError(
            f"an index with {len(found)} linux/amd64 entries", where=where, remedy="name the manifest by its digest"
        )
    return found[0]


def load_media_type(content_type: str | None) -> str:
    """A Content-Type header without its parameters, in lower case; empty when there is none."""
    return (content_type or "").partition(";")[0].strip().lower()


def verify_media_type(raw: bytes, media_type: str, where: str) -> None:
    """HostileInputError unless the type is one that was asked for, and the body says the same when it says anything."""
    if media_type not in (*MANIFEST_TYPES, *INDEX_TYPES):
        raise HostileInputError(f"not a manifest: Content-Type is {media_type[:100]!r}", where=where)
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise HostileInputError("a manifest that is not JSON", where=where) from error
    own = document.get("mediaType", media_type) if isinstance(document, dict) else None
    if own != media_type:
        raise HostileInputError(f"a manifest of another type than its Content-Type, {media_type}", where=where)
