"""The vendored curriculum of an image, where it has one: its bytes, its cases, and where it came from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pipeline.config import ImageSource
from pipeline.derive.vendored import MAX_MODULE_BYTES, check_vendored
from pipeline.errors import ConfigError
from pipeline.files import read_bytes_limited
from pipeline.model.material import Material
from pipeline.model.release import VendoredCurriculum
from pipeline.plan import Plan

CURRICULUM_LAYER = "curriculum"


class ExaminedCase(Protocol):
    """One case of a module that was run: its family, and the JSON text of its right answer."""

    @property
    def id(self) -> str:
        """The task id."""

    @property
    def family(self) -> str:
        """One of the module's TASK_IDS."""

    @property
    def answer(self) -> str:
        """Stays outside the image."""


# runs a module outside any image: its bytes, and the name that errors give it
ExamineVendored = Callable[[bytes, str], Sequence[ExaminedCase]]


def check_curricula(plan: Plan, examine: ExamineVendored) -> None:
    """Run every vendored curriculum of the plan; what cannot be released is refused before anything is built."""
    for image in plan.images:
        if image.source.definition.curriculum is not None:
            examine_curriculum(image.source, examine)


def read_module(source: ImageSource) -> bytes:
    """The bytes of an image's vendored curriculum, checked without running them; errors as `check_vendored`."""
    spec = _spec(source)
    raw = read_bytes_limited(source.definition_path / spec.source, MAX_MODULE_BYTES)
    check_vendored(raw, spec)
    return raw


def examine_curriculum(source: ImageSource, examine: ExamineVendored) -> tuple[ExaminedCase, ...]:
    """All cases, in the order of the image's task ids; ConfigError when the release names others."""
    spec = _spec(source)
    cases = {case.id: case for case in examine(read_module(source), spec.source)}
    if set(cases) != set(source.task_ids):
        wrong = sorted(set(cases) ^ set(source.task_ids))
        raise ConfigError(
            f"the vendored curriculum makes {len(cases)} tasks, the release knows {len(source.task_ids)} of it",
            where=f"{spec.source}: {', '.join(wrong[:5])}",
            remedy="where TASK_IDS is computed, cases.json beside image.yaml must list the ids of the module's cases",
        )
    return tuple(cases[task_id] for task_id in source.task_ids)


def make_curriculum_material(spec: VendoredCurriculum) -> Material:
    """The module as an input of the build: where it came from, at which revision, and its bytes."""
    uri = f"git+{spec.repository.removeprefix('git+')}@{spec.revision}#{spec.path}"
    return Material(uri=uri, name=spec.path, version=spec.revision, kind="file", digests={"sha256": spec.sha256})


def _spec(source: ImageSource) -> VendoredCurriculum:
    assert source.definition.curriculum is not None, "asked only for an image that has one"
    return source.definition.curriculum
