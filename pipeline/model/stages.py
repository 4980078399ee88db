"""The record that each stage leaves for the next one. Every digest in a record is recomputed before it is believed."""

from __future__ import annotations

from typing import Literal

from pipeline.model.digest import Digest
from pipeline.model.record import Record

LayerOrigin = Literal["base", "rewritten", "added"]
AttestationKind = Literal["signature", "provenance", "sbom", "scan", "checks", "summary"]


class OutputFile(Record):
    """A file beside a record: its name, digest and size in bytes."""

    path: str
    digest: Digest
    size: int


class LayerRecord(Record):
    """One layer of a built image: compressed digest and size, and where it came from."""

    name: str
    origin: LayerOrigin
    digest: Digest
    diff_id: Digest
    size: int
    media_type: str


class BuiltImage(Record):
    """What build leaves: an OCI layout beside this record, and what was said of it before publication.

    `inputs` is the digest of everything that the image was made from; `added_bytes` are compressed bytes over the base.
    """

    kind: Literal["built-image/v1"] = "built-image/v1"
    release: str
    target: str
    image: str
    inputs: Digest
    pinned: bool
    base: str
    repository: str
    manifest_digest: Digest
    manifest_media_type: str
    config_digest: Digest
    compressed_bytes: int
    added_bytes: int
    layers: tuple[LayerRecord, ...]
    outputs: tuple[OutputFile, ...]

    def output(self, path: str) -> OutputFile:
        """The output of that name; KeyError when the stage left none."""
        return next(output for output in self.outputs if output.path == path)


class Attached(Record):
    """One attestation that hangs on a digest in the registry."""

    kind: AttestationKind
    predicate_type: str
    referrer_digest: Digest
    bundle_digest: Digest
    bundle_bytes: int


class PublishedImage(Record):
    """What publish leaves: the pinned reference, its tag, and the attestations that were read back."""

    kind: Literal["published-image/v1"] = "published-image/v1"
    release: str
    target: str
    image: str
    built_record: Digest
    reference: str
    tag: str
    attestations: tuple[Attached, ...]
