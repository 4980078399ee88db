"""An image config and manifest out of a base and layers: pure, and written from nothing.

Only PATH comes over from a base's config: its labels, volumes, entrypoint, variables and history are somebody else's
words and may hold secrets. https://github.com/opencontainers/image-spec/blob/main/config.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from pydantic import JsonValue

from pipeline.model.oci import (
    DOCKER_LAYER_GZIP,
    OCI_CONFIG,
    OCI_LAYER_GZIP,
    OCI_MANIFEST,
    ImageConfig,
    Manifest,
)
from pipeline.model.record import canonical_json
from pipeline.model.release import ImageRuntime
from pipeline.model.stages import LayerRecord

DEFAULT_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_OCI_NAMES = {DOCKER_LAYER_GZIP: OCI_LAYER_GZIP}


def make_config(
    base: ImageConfig, layers: Sequence[LayerRecord], runtime: ImageRuntime, labels: Mapping[str, str], epoch_s: int
) -> ImageConfig:
    """The config of an image of exactly these layers; every time in it is `epoch_s`."""
    created = format_time(epoch_s)
    history: list[JsonValue] = [{"created": created, "created_by": f"{layer.origin}: {layer.name}"} for layer in layers]
    config: dict[str, JsonValue] = {
        "User": runtime.user,
        "WorkingDir": runtime.working_dir,
        "Env": [_path_of(base), *runtime.env],
        "Cmd": list(runtime.cmd),
        "ExposedPorts": {f"{runtime.port}/tcp": {}},
        "StopSignal": runtime.stop_signal,
        "Labels": dict(labels),
    }
    document: dict[str, JsonValue] = {
        "architecture": "amd64",
        "os": "linux",
        "created": created,
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
        "history": history,
    }
    return ImageConfig(canonical_json(document))


def make_manifest(config: ImageConfig, layers: Sequence[LayerRecord]) -> Manifest:
    """The OCI manifest over a config and layers; base layers keep their digests."""
    document: dict[str, JsonValue] = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": {"mediaType": OCI_CONFIG, "digest": config.digest, "size": len(config.raw)},
        "layers": [
            {
                "mediaType": _OCI_NAMES.get(layer.media_type, layer.media_type),
                "digest": layer.digest,
                "size": layer.size,
            }
            for layer in layers
        ],
    }
    return Manifest(canonical_json(document), OCI_MANIFEST)


def format_time(epoch_s: int) -> str:
    """RFC 3339, UTC, seconds."""
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _path_of(base: ImageConfig) -> str:
    env = base.view.config.env if base.view.config and base.view.config.env else ()
    return next((line for line in env if line.startswith("PATH=")), DEFAULT_PATH)
