"""A base's layers without its future history and fixtures; only layers with findings are written anew."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from pipeline.derive.history import Future, find_future
from pipeline.derive.layer import Entry
from pipeline.derive.repository import CleanRepository, StripReport, make_clean_repository, read_layers
from pipeline.derive.rewrite import drop_paths, rewrite_layer
from pipeline.derive.strip import StripPlan, plan_strip
from pipeline.errors import ConfigError
from pipeline.files import read_bytes_limited, write_atomic
from pipeline.layout import Layout
from pipeline.model.oci import OCI_LAYER_GZIP, Descriptor
from pipeline.model.record import Record
from pipeline.model.stages import LayerRecord
from pipeline.paths import STATE_FOLDER
from pipeline.plan import Plan, PlannedImage
from pipeline.ports import Reporter
from pipeline.scan.rules import Rules
from pipeline.stages.assemble import record_of
from pipeline.stages.bases import Base
from pipeline.stages.fileset import MAX_FILE_BYTES
from pipeline.stages.scan import scan_store
from pipeline.stages.scanning import FolderCache, make_rules, read_future, render_future


class BaseReport(Record):
    """strip.json: what the base held, what went, and what was kept of its repository."""

    base: str
    leaks: dict[str, int]
    rewritten: dict[str, str]
    dropped_layers: tuple[str, ...]
    repository: StripReport | None


@dataclass(frozen=True)
class Stripped:
    """Layers to build on, the clean repository's entries (empty where there is none), and the report."""

    layers: tuple[LayerRecord, ...]
    repository: tuple[Entry, ...]
    report: BaseReport


class StripPorts(Protocol):
    """What stripping needs from the world."""

    @property
    def reporter(self) -> Reporter:
        """For people."""

    @property
    def prove(self) -> Callable[[CleanRepository], int]:
        """Checks that a rebuilt repository holds exactly what its HEAD reaches; how many objects."""


def strip_base(plan: Plan, image: PlannedImage, base: Base, layout: Layout, cache: Path, ports: StripPorts) -> Stripped:
    """Put the base's layers into the layout, rewritten where something must go."""
    if not base.strips:
        layers = tuple(_keep(base, number, layout) for number in range(len(base.layer_names)))
        report = BaseReport(base=str(base.reference), leaks={}, rewritten={}, dropped_layers=(), repository=None)
        return Stripped(layers, (), report)
    # 1. The repository, rebuilt from what the base commit reaches, and proved by a library that had no part in it.
    folder = read_cwd(image)
    openers = [partial(base.layout.open, layer.digest) for layer in base.manifest.view.layers]
    with ports.reporter.step(f"{image.id}: rebuild the repository at its base commit"):
        source = read_layers(openers, f"{folder}/.git".encode())
        clean = make_clean_repository(source, image.base_commit or "", folder, keep=lambda _: False)
        ports.prove(clean)
    # 2. What is in the base, judged by topology and by the texts of the future.
    with ports.reporter.step(f"{image.id}: scan the base"):
        rules = _base_rules(plan, image, find_future(source, image.base_commit or ""))
        scan, scans = scan_store(base.layout, base.manifest, rules, FolderCache(cache / "scans"))
    # 3. The layers that hold anything of it, without it.
    strip = plan_strip(scan, scans, {folder: None})
    layers, report = _rewrite(base, strip, layout)
    kinds = {f"{leak.reach} {leak.kind}" for leak in scan.leaks}
    leaks = {kind: sum(f"{leak.reach} {leak.kind}" == kind for leak in scan.leaks) for kind in sorted(kinds)}
    return Stripped(layers, clean.entries, report.model_copy(update={"leaks": leaks, "repository": clean.report}))


def _base_rules(plan: Plan, image: PlannedImage, future: Future) -> Rules:
    """The image's rules and, for the base alone, the future's texts: a patch or a compiled file of it is found, too."""
    known = read_future(plan, image)
    if known != future.objects:
        fresh = plan.release.root / STATE_FOLDER / f"future-{image.id}.txt"
        write_atomic(fresh, render_future(future.objects))
        raise ConfigError(
            f"the source history has {len(future.objects)} future objects, and future.txt names {len(known)} others",
            where=f"{image.source.released.task}/task.yaml: future",
            remedy=f"if the recipe was changed on purpose: cp {fresh} over it",
        )
    rules = make_rules(plan, image)
    return replace(rules, fingerprints=(*rules.fingerprints, *future.fingerprints))


def read_cwd(image: PlannedImage) -> str:
    """The record's cwd, relative to the root."""
    task, folder = image.source.task, image.source.task_path
    assert task is not None, "only a repair has a repository"
    assert folder is not None, "config refuses a task without a folder"
    path = folder / task.record
    cwd = json.loads(read_bytes_limited(path, MAX_FILE_BYTES)).get("cwd")
    if not isinstance(cwd, str) or not cwd.startswith("/") or ".." in cwd.split("/"):
        raise ConfigError(f"cwd must be an absolute, normal path: {cwd!r}", where=str(path))
    return cwd.strip("/")


def _rewrite(base: Base, strip: StripPlan, layout: Layout) -> tuple[tuple[LayerRecord, ...], BaseReport]:
    layers: list[LayerRecord] = []
    rewritten: dict[str, str] = {}
    gone: list[str] = []
    for number, layer in enumerate(base.manifest.view.layers):
        paths = strip.layers.get(layer.digest)
        record = _keep(base, number, layout) if paths is None else _write(base, number, paths, layout)
        if record is None:
            gone.append(layer.digest)
            continue
        if record.origin == "rewritten":
            rewritten[layer.digest] = record.digest
        layers.append(record)
    report = BaseReport(
        base=str(base.reference), leaks={}, rewritten=rewritten, dropped_layers=tuple(gone), repository=None
    )
    return tuple(layers), report


def _keep(base: Base, number: int, layout: Layout) -> LayerRecord:
    layer = base.manifest.view.layers[number]
    layout.link_from(base.layout, layer.digest)
    return LayerRecord(
        name=base.layer_names[number],
        origin="base",
        digest=layer.digest,
        diff_id=base.config.view.rootfs.diff_ids[number],
        size=layer.size,
        media_type=layer.media_type,
    )


def _write(base: Base, number: int, paths: frozenset[bytes], layout: Layout) -> LayerRecord | None:
    layer = base.manifest.view.layers[number]
    with base.layout.open(layer.digest) as source, tempfile.TemporaryFile() as spool:
        result = rewrite_layer(source, drop_paths(paths), spool)
        if result is None:
            return _keep(base, number, layout)
        if result.facts.entries == 0:
            return None
        spool.seek(0)
        expected = Descriptor(mediaType=OCI_LAYER_GZIP, digest=result.facts.digest, size=result.facts.size)
        layout.write(iter(lambda: spool.read(1 << 20), b""), expected)
    return record_of(base.layer_names[number], "rewritten", result.facts)
