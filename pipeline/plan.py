"""What a build would do, as a value: pure, so that tests and `nox -s plan` look at it without an engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pipeline.config import ImageSource, Release
from pipeline.errors import ConfigError
from pipeline.model.reference import Reference
from pipeline.model.release import Target
from pipeline.tasks import place_tasks

BaseKind = Literal["recipe", "pinned", "image"]


@dataclass(frozen=True)
class PlannedImage:
    """One image: where it will be, what it is made from, and the layers that are added to that.

    `base_commit` is what everything in the image must be reachable from; None for a pinned image, whose HEAD counts.
    """

    source: ImageSource
    reference: Reference
    base_kind: BaseKind
    base: str
    layers: tuple[str, ...]
    base_commit: str | None

    @property
    def id(self) -> str:
        """The image's id."""
        return self.source.id

    @property
    def repository(self) -> Reference:
        """Where it is pushed, without a tag."""
        return Reference(self.reference.registry, self.reference.repository)


@dataclass(frozen=True)
class Plan:
    """A release on one target; images in an order in which each follows its base."""

    release: Release
    target_name: str
    target: Target
    images: tuple[PlannedImage, ...]

    def image(self, image_id: str) -> PlannedImage:
        """The planned image of that id."""
        return next(image for image in self.images if image.id == image_id)


def make_plan(release: Release, target_name: str | None) -> Plan:
    """Resolve a release for a target; ConfigError when it does not exist, or has no source for an image."""
    name, target = release.target(target_name)
    planned: dict[str, PlannedImage] = {}
    for source in release.images:
        planned[source.id] = _plan_image(release, (name, target), source, planned)
    return Plan(release, name, target, tuple(planned.values()))


def _plan_image(
    release: Release, named: tuple[str, Target], source: ImageSource, planned: Mapping[str, PlannedImage]
) -> PlannedImage:
    name, target = named
    reference = _reference(target, source.id, release.file.release)
    if source.id in target.pinned:
        return PlannedImage(source, reference, "pinned", target.pinned[source.id], (), None)
    names = tuple(layer.name for layer in source.definition.layers)
    if source.definition.curriculum is not None:
        names = (*names, "curriculum")
    if source.released.base is not None:
        base = planned[source.released.base]
        return PlannedImage(source, reference, "image", base.id, names, base.base_commit)
    if source.task is None:
        raise ConfigError(
            f"target {name!r} has no source for image {source.id!r}: it has no task to rebuild, and is not pinned",
            where=f"release file: targets.{name}.pinned",
            remedy="pin it by digest there, or choose another target",
        )
    recipe = f"{source.task.repository.project} {source.task.repository.base_version}"
    return PlannedImage(source, reference, "recipe", recipe, (*names, "task"), source.task.base_commit)


def _reference(target: Target, image_id: str, date: str) -> Reference:
    # one repository an image where the target's name has a place for it; else one repository and a tag an image
    if "{image}" in target.repository:
        return Reference(target.registry, target.repository.replace("{image}", image_id), date)
    return Reference(target.registry, target.repository, f"{image_id}-{date}")


def render_plan(plan: Plan) -> str:
    """The plan as `nox -s plan` prints it."""
    target = f"target {plan.target_name!r}, {plan.target.kind}: {plan.target.registry}"
    lines = [
        f"release {plan.release.file.release} on {target}",
        f"signed by {plan.target.identity.subject}",
        _task_line(plan),
    ]
    for image in plan.images:
        lines += [
            "",
            f"{image.id}: {_title(image)}",
            *(f"  {line}" for line in _image_lines(plan, image)),
        ]
    lines += ["", "policies:"]
    lines += [f"  {policy.id:20} {policy.severity:8} {policy.statement}" for policy in plan.release.policies]
    return "\n".join(lines)


def _title(image: PlannedImage) -> str:
    published = image.source.released.published
    return published.title if published is not None and image.base_kind == "pinned" else image.source.definition.title


def _checks(image: PlannedImage) -> str:
    definition = image.source.definition
    if definition.suite == "repair" and image.source.task is None:
        return "none can be played: the suite of a repair needs its task record and reference repair"
    return f"suite {definition.suite!r}, before publication and after the anonymous pull"


def _task_line(plan: Plan) -> str:
    placed = place_tasks(plan.release.file.tasks, {image.id: image.task_ids for image in plan.release.images})
    counts = Counter(task.image for task in placed)
    return f"tasks: {len(placed)} ({', '.join(f'{count} of {image}' for image, count in counts.items())})"


def _image_lines(plan: Plan, image: PlannedImage) -> list[str]:
    definition = image.source.definition
    origin = {
        "recipe": f"rebuilt from the sdists of {image.base}; its future history is stripped",
        "pinned": f"{image.base}, used as it is",
        "image": f"image {image.base} of this release",
    }[image.base_kind]
    lines = [f"base:     {origin}"]
    if image.base_kind == "recipe" and definition.debian:
        lines.append(f"root:     Debian {definition.debian.suite}: {', '.join(definition.debian.packages)}")
    if image.layers:
        lines.append(f"adds:     {', '.join(image.layers)}")
    if definition.curriculum is not None:
        one = definition.curriculum
        lines.append(f"cases:    {one.path} of {one.repository} at {one.revision}, {one.licence}, as it is")
    return [
        *lines,
        f"starts:   {' '.join(definition.runtime.cmd)} on port {definition.runtime.port}",
        f"checks:   {_checks(image)}",
        f"keeps out: {', '.join(definition.fixtures.paths)}",
        f"tag:      {image.reference}",
    ]
