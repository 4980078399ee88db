"""The built images as running containers: loaded once, started as verification starts them, removed afterwards."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import StageError
from pipeline.layout import Layout
from pipeline.model.oci import ImageConfig, Manifest
from pipeline.model.record import canonical_json
from pipeline.model.stages import BuiltImage
from pipeline.plan import PlannedImage
from pipeline.ports import Container, ContainerLimits
from pipeline.stages.records import load_built, load_config, load_manifest
from pipeline.world import World

PYROMAT = "format-code-task-000666"
MRI_NUFFT = "format-code-task-001926"


@dataclass(frozen=True)
class BuiltLayout:
    """An image as build left it, every digest recomputed."""

    record: BuiltImage
    layout: Layout
    manifest: Manifest
    config: ImageConfig


def read_built(world: World, image: PlannedImage) -> BuiltLayout:
    """The image's record and documents; StageError when it is not built."""
    record, layout = load_built(world.paths, image.id)
    manifest = load_manifest(layout, record.manifest_digest, record.manifest_media_type)
    return BuiltLayout(record, layout, manifest, load_config(layout, record.config_digest))


def find_task(world: World, task_id: str) -> PlannedImage | None:
    """The release's image of that task."""
    return next((one for one in world.plan.images if one.source.task and one.source.task.id == task_id), None)


def find_workflow(world: World) -> PlannedImage:
    """The release's procedural image; StageError when it has none."""
    for image in world.plan.images:
        if image.source.definition.suite == "workflow":
            return image
    raise StageError("this release has no software image", where="release.yaml", remedy="measure another group")


@contextmanager
def loaded(world: World, image: PlannedImage) -> Iterator[str]:
    """The image in the engine, by id."""
    built = read_built(world, image)
    with world.reporter.step(f"{image.id}: load into the engine"):
        image_id = world.engine.load(built.layout, built.manifest, f"bench-{image.id}")
    try:
        yield image_id
    finally:
        world.engine.remove_image(image_id)


@contextmanager
def loaded_without_server(world: World, image: PlannedImage) -> Iterator[str]:
    """The same layers in the engine, with a command that only sleeps: what a container costs by itself."""
    built = read_built(world, image)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        layout = Layout(Path(folder))
        for layer in built.manifest.view.layers:
            layout.link_from(built.layout, layer.digest)
        manifest = with_command(built.manifest, built.config, ["/bin/sleep", "600"], layout)
        image_id = world.engine.load(layout, manifest, f"bench-sleep-{image.id}")
    try:
        yield image_id
    finally:
        world.engine.remove_image(image_id)


@contextmanager
def serving(world: World, image_id: str, name: str) -> Iterator[Container]:
    """A container of the image whose server answers."""
    from pipeline.adapters.probe import wait_ready

    with world.engine.run(image_id, name=f"bench-{name}", limits=ContainerLimits()) as container:
        wait_ready(container.url)
        yield container


def with_command(manifest: Manifest, config: ImageConfig, command: Sequence[str], layout: Layout) -> Manifest:
    """The image with another command: its new config is written into the layout, its layers are what they were."""
    changed = json.loads(config.raw)
    changed["config"]["Cmd"] = list(command)
    raw = canonical_json(changed)
    document = json.loads(manifest.raw)
    document["config"] |= {"digest": layout.write_bytes(raw), "size": len(raw)}
    return Manifest(canonical_json(document), manifest.media_type)
