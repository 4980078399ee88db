"""The local target's sources, as the build stage asks for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pipeline.config import ImageSource
from pipeline.embedded.layercache import SourceLayer
from pipeline.embedded.taskimage import Sources, TaskImage, make_task_image, make_wheel_layer
from pipeline.errors import ConfigError
from pipeline.model.release import Layer
from pipeline.ports import BlobStore


@dataclass(frozen=True)
class LocalSources:
    """Task images and wheel layers from Debian packages, wheels and sdists; `report` gets a line a step."""

    sources: Sources
    report: Callable[[str], None]

    def make_task_image(self, image: ImageSource, store: BlobStore, epoch_s: int) -> TaskImage:
        """The task image of a repair, with its future history, into the store."""
        if image.task is None or image.task_path is None:
            raise ConfigError(f"image {image.id!r} has no task to rebuild", where="release.yaml")
        return make_task_image(image.definition, image.task, image.task_path, self.sources, store, epoch_s, self.report)

    def make_wheel_layer(self, image: ImageSource, layer: Layer, store: BlobStore, epoch_s: int) -> SourceLayer:
        """A layer of hash-pinned wheels, the same digest in every image."""
        if layer.wheels is None or layer.path is None or image.definition.debian is None:
            raise ConfigError(
                f"layer {layer.name!r} takes wheels, a path and a Debian root",
                where=str(image.definition_path / "image.yaml"),
            )
        lock_path = image.definition_path / layer.wheels
        return make_wheel_layer(lock_path, layer.path, image.definition.debian, self.sources, store, epoch_s)
