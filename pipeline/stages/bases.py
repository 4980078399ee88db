"""The base that an image is made from: rebuilt, pinned or of this release; always a digest, always complete on disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pipeline.config import ImageSource
from pipeline.errors import ConfigError
from pipeline.layout import Layout
from pipeline.model.material import Material
from pipeline.model.oci import ImageConfig, Manifest
from pipeline.model.reference import Reference, load_reference
from pipeline.model.release import Layer
from pipeline.model.stages import LayerRecord
from pipeline.paths import Paths
from pipeline.plan import Plan, PlannedImage
from pipeline.ports import PullRegistry, PushRegistry, Reporter
from pipeline.stages.pull import pull_image
from pipeline.stages.records import load_config

SOURCES = "sources"


class SourceImage(Protocol):
    """A task image that was rebuilt from real packages, with what it was made from."""

    @property
    def manifest(self) -> Manifest:
        """Raw, and already in the store."""

    @property
    def base_commit(self) -> str:
        """Of the rebuilt repository."""

    @property
    def materials(self) -> tuple[Material, ...]:
        """Every package, wheel, sdist and commit."""


class SourceLayer(Protocol):
    """A layer that was made from packages."""

    @property
    def layer(self) -> LayerRecord:
        """Digests and sizes."""

    @property
    def materials(self) -> tuple[Material, ...]:
        """What it was made from."""


class Sources(Protocol):
    """Real packages as layers: the embedded target's own way to a base."""

    def make_task_image(self, image: ImageSource, store: Layout, epoch_s: int) -> SourceImage:
        """The task image of a repair, with its future history, into the store."""

    def make_wheel_layer(self, image: ImageSource, layer: Layer, store: Layout, epoch_s: int) -> SourceLayer:
        """A layer of hash-pinned wheels, the same digest in every image."""


@dataclass(frozen=True)
class Base:
    """A base image on disk; `reference` is pinned. `strips` says that it is ours to rewrite."""

    reference: Reference
    manifest: Manifest
    config: ImageConfig
    layout: Layout
    materials: tuple[Material, ...]
    layer_names: tuple[str, ...]
    strips: bool


def resolve_base(
    plan: Plan,
    image: PlannedImage,
    paths: Paths,
    sources: Sources,
    registry: PullRegistry,
    source_registry: PushRegistry | None,
    reporter: Reporter,
    below: Base | None,
) -> Base:
    """Make, fetch or take the base of an image; `below` is an image of this release as a base."""
    if image.base_kind == "image":
        assert below is not None, "images are derived in the order of their bases"
        return below
    if image.base_kind == "pinned":
        return _pinned_base(image, paths, registry, reporter)
    if source_registry is None:
        raise ConfigError(
            f"image {image.id!r} would be rebuilt from packages on a remote target",
            where=f"release.yaml: targets.{plan.target_name}.pinned",
            remedy="pin the task image by digest for this target",
        )
    return _rebuilt_base(plan, image, paths, sources, source_registry, reporter)


def _pinned_base(image: PlannedImage, paths: Paths, registry: PullRegistry, reporter: Reporter) -> Base:
    reference = load_reference(image.base, f"release.yaml: {image.id}", pinned=True)
    pulled = pull_image(reference, paths.base(image.id), registry, reporter)
    names = tuple(f"base-{number}" for number, _ in enumerate(pulled.manifest.view.layers, 1))
    return Base(reference, pulled.manifest, pulled.config, pulled.layout, (), names, strips=False)


def _rebuilt_base(
    plan: Plan,
    image: PlannedImage,
    paths: Paths,
    sources: Sources,
    source_registry: PushRegistry,
    reporter: Reporter,
) -> Base:
    layout = Layout(paths.base(image.id))
    with reporter.step(f"{image.id}: rebuild the task image of {image.base}"):
        made = sources.make_task_image(image.source, layout, plan.release.epoch_s)
    _check_base_commit(image, made.base_commit)
    reference = Reference(plan.target.registry, f"{SOURCES}/{image.id}").with_digest(made.manifest.digest)
    blobs = (*made.manifest.view.layers, made.manifest.view.config)
    with reporter.step(f"{image.id}: keep the task image as {reference}", sum(blob.size for blob in blobs)) as advance:
        for blob in blobs:
            source_registry.push_blob(reference, blob, layout, None)
            advance(blob.size)
        source_registry.push_manifest(reference, made.manifest)
    config = load_config(layout, made.manifest.view.config.digest)
    names = ("debian", "packages", "repository")
    return Base(reference, made.manifest, config, layout, made.materials, names, strips=True)


def _check_base_commit(image: PlannedImage, found: str) -> None:
    if found != image.base_commit:
        raise ConfigError(
            f"the rebuilt repository's base commit is {found}, and task.yaml says {image.base_commit}",
            where=f"{image.source.released.task}/task.yaml: base_commit",
            remedy="if the recipe was changed on purpose, write the new commit there",
        )
