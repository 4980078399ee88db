"""Signed once: a bundle is journalled before it is pushed, so that an interrupted run attaches the same bytes again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pipeline.errors import IntegrityError
from pipeline.files import read_bytes_limited, write_atomic
from pipeline.layout import Layout
from pipeline.model.attachment import EMPTY_CONFIG
from pipeline.model.attestation import MAX_BUNDLE_BYTES
from pipeline.model.digest import digest_of, hex_of
from pipeline.model.oci import Manifest
from pipeline.model.reference import Reference
from pipeline.ports import Attested, PushRegistry, Signer


def sign_once(
    folder: Path, name: str, statement: bytes, signer: Signer, verify: Callable[[bytes, str], Attested]
) -> Attested:
    """The bundle of a statement, from the journal in `folder` or signed now; `verify` takes bundle and place.

    The journal is keyed by `name` and the statement: another statement is never answered by an old bundle.
    IntegrityError names a journalled bundle that does not verify.
    """
    path = folder / "journal" / f"{name}-{hex_of(digest_of(statement))[:16]}.sigstore.json"
    if not path.is_file():
        write_atomic(path, signer.sign(statement))
    try:
        return verify(read_bytes_limited(path, MAX_BUNDLE_BYTES), str(path))
    except IntegrityError as error:
        error.remedy = "remove this file and publish again: what was never pushed is signed anew"
        raise


def push_bundle_blobs(place: Reference, carrier: Manifest, bundle: bytes, folder: Path, registry: PushRegistry) -> None:
    """Push the two blobs of a manifest that carries a bundle; they lie in `folder` for as long."""
    store = Layout(folder / "referrers")
    for content, descriptor in ((EMPTY_CONFIG, carrier.view.config), (bundle, carrier.view.layers[0])):
        store.write_bytes(content)
        registry.push_blob(place, descriptor, store, None)
