"""OCI documents as raw bytes with a typed view beside them. The bytes are the truth; the view is for reading.

Specification: https://github.com/opencontainers/image-spec, manifest.md, config.md, descriptor.md. Unknown fields are
tolerated, as the specification asks. Documents are bounded before they are parsed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipeline.errors import HostileInputError
from pipeline.model.digest import Digest, digest_of

OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_CONFIG = "application/vnd.oci.image.config.v1+json"
OCI_LAYER_GZIP = "application/vnd.oci.image.layer.v1.tar+gzip"
OCI_LAYER_TAR = "application/vnd.oci.image.layer.v1.tar"
OCI_LAYER_ZSTD = "application/vnd.oci.image.layer.v1.tar+zstd"
OCI_EMPTY = "application/vnd.oci.empty.v1+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_INDEX = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_CONFIG = "application/vnd.docker.container.image.v1+json"
DOCKER_LAYER_GZIP = "application/vnd.docker.image.rootfs.diff.tar.gzip"
SIGSTORE_BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"

MANIFEST_TYPES = (OCI_MANIFEST, DOCKER_MANIFEST)
INDEX_TYPES = (OCI_INDEX, DOCKER_INDEX)
MAX_MANIFEST_BYTES = 4 << 20
MAX_CONFIG_BYTES = 8 << 20


View = TypeVar("View", bound="_Document")


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)


class Platform(_Document):
    """Of an index entry."""

    architecture: str
    os: str


class Descriptor(_Document):
    """Media type, digest and size in bytes of a blob or manifest."""

    media_type: str = Field(alias="mediaType")
    digest: Digest
    size: int = Field(ge=0)
    annotations: dict[str, str] | None = None
    artifact_type: str | None = Field(default=None, alias="artifactType")
    platform: Platform | None = None

    def to_json(self) -> dict[str, Any]:
        """The descriptor as an OCI document carries it, without absent fields."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class ManifestView(_Document):
    """The fields of an image manifest that the pipeline reads."""

    schema_version: int = Field(alias="schemaVersion")
    media_type: str | None = Field(default=None, alias="mediaType")
    artifact_type: str | None = Field(default=None, alias="artifactType")
    config: Descriptor
    layers: tuple[Descriptor, ...]
    subject: Descriptor | None = None
    annotations: dict[str, str] | None = None


class IndexView(_Document):
    """The fields of an index that the pipeline reads."""

    schema_version: int = Field(alias="schemaVersion")
    manifests: tuple[Descriptor, ...]


class RuntimeConfig(_Document):
    """`config` of an image config: what a container starts with."""

    user: str | None = Field(default=None, alias="User")
    env: tuple[str, ...] | None = Field(default=None, alias="Env")
    entrypoint: tuple[str, ...] | None = Field(default=None, alias="Entrypoint")
    cmd: tuple[str, ...] | None = Field(default=None, alias="Cmd")
    working_dir: str | None = Field(default=None, alias="WorkingDir")
    exposed_ports: dict[str, Any] | None = Field(default=None, alias="ExposedPorts")
    stop_signal: str | None = Field(default=None, alias="StopSignal")
    labels: dict[str, str] | None = Field(default=None, alias="Labels")
    volumes: dict[str, Any] | None = Field(default=None, alias="Volumes")


class RootFs(_Document):
    """`rootfs` of an image config."""

    type: str
    diff_ids: tuple[Digest, ...]


class HistoryEntry(_Document):
    """One line of an image's history."""

    created: str | None = None
    created_by: str | None = None
    comment: str | None = None
    empty_layer: bool | None = None


class ConfigView(_Document):
    """The fields of an image config that the pipeline reads."""

    architecture: str
    os: str
    created: str | None = None
    config: RuntimeConfig | None = None
    rootfs: RootFs
    history: tuple[HistoryEntry, ...] | None = None


@dataclass(frozen=True)
class Manifest:
    """An image manifest exactly as served, and its view."""

    raw: bytes
    media_type: str

    @cached_property
    def digest(self) -> str:
        """Of the raw bytes, never of a re-serialised document."""
        return digest_of(self.raw)

    @cached_property
    def view(self) -> ManifestView:
        """Parsed; HostileInputError when the bytes are not a manifest."""
        return _parse(ManifestView, self.raw, MAX_MANIFEST_BYTES, self.digest)

    @property
    def descriptor(self) -> Descriptor:
        """What an index or a referrer's `subject` says of it."""
        return Descriptor(mediaType=self.media_type, digest=self.digest, size=len(self.raw))

    @property
    def compressed_bytes(self) -> int:
        """Config and layers, as the registry stores them."""
        return self.view.config.size + sum(layer.size for layer in self.view.layers)


@dataclass(frozen=True)
class ImageConfig:
    """An image config exactly as stored, and its view. Its digest is the engine's image id."""

    raw: bytes

    @cached_property
    def digest(self) -> str:
        """Of the raw bytes."""
        return digest_of(self.raw)

    @cached_property
    def view(self) -> ConfigView:
        """Parsed; HostileInputError when the bytes are not a config."""
        return _parse(ConfigView, self.raw, MAX_CONFIG_BYTES, self.digest)


def load_index(raw: bytes, where: str) -> IndexView:
    """Parse an index or manifest list; HostileInputError names `where`."""
    return _parse(IndexView, raw, MAX_MANIFEST_BYTES, where)


def _parse(kind: type[View], raw: bytes, limit_bytes: int, where: str) -> View:
    if len(raw) > limit_bytes:
        raise HostileInputError(f"{kind.__name__} of {len(raw)} bytes; the limit is {limit_bytes}", where=where)
    try:
        return kind.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "document"
        raise HostileInputError(f"not an OCI document: {field}: {first['msg']}", where=where) from error
