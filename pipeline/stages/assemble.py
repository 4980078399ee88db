"""The layers that an image adds, and its config and manifest, written into its layout."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from pipeline.derive.image import format_time, make_config, make_manifest
from pipeline.derive.layer import Entry, LayerFacts, make_tar, write_layer
from pipeline.derive.vendored import make_vendored_entry
from pipeline.files import read_bytes_limited
from pipeline.layout import Layout
from pipeline.model.material import Material
from pipeline.model.oci import OCI_LAYER_GZIP, Descriptor, ImageConfig, Manifest
from pipeline.model.record import canonical_json
from pipeline.model.release import Layer, TaskDefinition
from pipeline.model.stages import LayerOrigin, LayerRecord
from pipeline.plan import Plan, PlannedImage
from pipeline.stages.bases import Base, Sources
from pipeline.stages.curriculum import CURRICULUM_LAYER, make_curriculum_material, read_module
from pipeline.stages.fileset import MAX_FILE_BYTES, read_fileset

ARENA = "opt/arena"


@dataclass(frozen=True)
class Assembled:
    """An image in a layout: raw manifest and config, its layers, and what the added ones were made from."""

    manifest: Manifest
    config: ImageConfig
    layers: tuple[LayerRecord, ...]
    materials: tuple[Material, ...]


def add_layers(
    plan: Plan, image: PlannedImage, layout: Layout, sources: Sources, repository: Sequence[Entry]
) -> tuple[tuple[LayerRecord, ...], tuple[Material, ...]]:
    """Write every layer that image.yaml names, the vendored curriculum's, and the task's own, into the layout."""
    epoch_s = plan.release.epoch_s
    layers: list[LayerRecord] = []
    materials: list[Material] = []
    for layer in image.source.definition.layers:
        if layer.wheels is not None:
            made = sources.make_wheel_layer(image.source, layer, layout, epoch_s)
            materials += made.materials
            layers.append(made.layer.model_copy(update={"name": layer.name, "origin": "added"}))
        else:
            layers.append(record_of(layer.name, "added", store_layer(_file_entries(image, layer), layout, epoch_s)))
    if image.source.definition.curriculum is not None:
        layers.append(record_of(CURRICULUM_LAYER, "added", store_layer(_curriculum_entries(image), layout, epoch_s)))
        materials.append(make_curriculum_material(image.source.definition.curriculum))
    if image.source.task is not None:
        entries = _task_entries(image, image.source.task, repository, epoch_s)
        layers.append(record_of("task", "added", store_layer(entries, layout, epoch_s)))
    return tuple(layers), tuple(materials)


def assemble(
    plan: Plan,
    image: PlannedImage,
    base: Base,
    layers: tuple[LayerRecord, ...],
    materials: tuple[Material, ...],
    layout: Layout,
    revision: str,
) -> Assembled:
    """Config and manifest over the layers, and the layout's index, last."""
    labels = make_labels(plan, image, base, revision)
    config = make_config(base.config, layers, image.source.definition.runtime, labels, plan.release.epoch_s)
    manifest = make_manifest(config, layers)
    layout.write_bytes(config.raw)
    layout.write_bytes(manifest.raw)
    layout.write_index([manifest.descriptor])
    return Assembled(manifest, config, layers, materials)


def make_labels(plan: Plan, image: PlannedImage, base: Base, revision: str) -> dict[str, str]:
    """The OCI annotations that every image carries as labels."""
    prefix, task = "org.opencontainers.image", image.source.task
    return {
        f"{prefix}.title": task.title if task else image.source.definition.title,
        f"{prefix}.description": image.source.definition.description,
        f"{prefix}.source": plan.release.file.source,
        f"{prefix}.revision": revision,
        f"{prefix}.version": plan.release.file.release,
        f"{prefix}.created": format_time(plan.release.epoch_s),
        f"{prefix}.licenses": image.source.definition.licences,
        f"{prefix}.base.name": f"{base.reference.registry}/{base.reference.repository}",
        f"{prefix}.base.digest": base.manifest.digest,
    }


def store_layer(entries: Iterable[Entry], layout: Layout, epoch_s: int) -> LayerFacts:
    """Write entries as a layer blob of the layout."""
    with tempfile.TemporaryFile() as spool:
        facts = write_layer(entries, spool, epoch_s)
        spool.seek(0)
        expected = Descriptor(mediaType=OCI_LAYER_GZIP, digest=facts.digest, size=facts.size)
        layout.write(iter(lambda: spool.read(1 << 20), b""), expected)
    return facts


def record_of(name: str, origin: LayerOrigin, facts: LayerFacts) -> LayerRecord:
    """The record of a layer that was written here."""
    return LayerRecord(
        name=name,
        origin=origin,
        digest=facts.digest,
        diff_id=facts.diff_id,
        size=facts.size,
        media_type=OCI_LAYER_GZIP,
    )


def _file_entries(image: PlannedImage, layer: Layer) -> list[Entry]:
    entries = [entry for files in layer.files for entry in read_fileset(image.source.definition_path, files)]
    return [_arena_folder(), *entries]


def _arena_folder() -> Entry:
    # every layer that touches the folder says so again: an implied parent would open it to everybody
    return Entry(ARENA, "dir", b"", 0o700)


def _curriculum_entries(image: PlannedImage) -> list[Entry]:
    module = make_vendored_entry(read_module(image.source))
    return [_arena_folder(), Entry(module.path.rpartition("/")[0], "dir", b"", 0o700), module]


def _task_entries(image: PlannedImage, task: TaskDefinition, repository: Sequence[Entry], epoch_s: int) -> list[Entry]:
    assert image.source.task_path is not None, "config refuses a task without a folder"
    record = read_bytes_limited(image.source.task_path / task.record, MAX_FILE_BYTES)
    return [
        _arena_folder(),
        Entry(f"{ARENA}/record.json", "file", record, 0o600),
        Entry(f"{ARENA}/task.json", "file", make_task_file(task), 0o600),
        Entry(f"{ARENA}/snapshot.tar", "file", make_tar(_relative(repository), epoch_s), 0o600),
        *repository,
    ]


def make_task_file(task: TaskDefinition) -> bytes:
    """What the server needs to know of a task beside its record."""
    document: dict[str, JsonValue] = {
        "id": task.id,
        "title": task.title,
        "base_commit": task.base_commit,
        "guard": task.guard,
        "record_sha256": task.record_sha256,
    }
    return canonical_json(document)


def _relative(repository: Sequence[Entry]) -> list[Entry]:
    top = min((entry.path for entry in repository), key=len)
    return [
        Entry(e.path[len(top) + 1 :], e.kind, e.data, e.mode, e.uid, e.gid, e.target)
        for e in repository
        if e.path != top
    ]
