"""The examiner of a release: layer scans, and the suite of an image's definition, in containers."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from pydantic import JsonValue

from pipeline.errors import ServiceError
from pipeline.layout import Layout
from pipeline.model.finding import CheckReport
from pipeline.model.oci import ImageConfig, Manifest
from pipeline.plan import Plan, PlannedImage
from pipeline.ports import Arena, ContainerLimits, Engine, Reporter
from pipeline.scan.record import ImageScan
from pipeline.stages.curriculum import ExamineVendored
from pipeline.stages.examiner import Examination
from pipeline.stages.scan import ScanCache, scan_store
from pipeline.stages.scanning import make_rules
from pipeline.stages.suites import make_scenarios
from pipeline.suites.runner import run_timed_suite
from pipeline.suites.scenario import Bench, PlayFramework

# containers an image; the images of a release are examined at once
WORKERS = 2


@dataclass(frozen=True)
class ServerProbe:
    """How a running server is looked at from outside; each takes its URL, waiting also how to know that it is over."""

    open_arena: Callable[[str], Arena]
    wait_ready: Callable[[str, Callable[[], bool]], float]
    fetch_schema: Callable[[str], Mapping[str, JsonValue]]
    validate: Callable[[str], JsonValue]
    play_framework: PlayFramework


@dataclass(frozen=True)
class ImageExaminer:
    """`stages.examiner.Examiner` over the layer scanner, the suites, an engine, and a runner of vendored curricula.

    `scans` has the layer scans that are believed without reading the layer again.
    """

    plan: Plan
    scans: ScanCache
    engine: Engine
    probe: ServerProbe
    reporter: Reporter
    examine_vendored: ExamineVendored
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1), repr=False)
    _stopped: threading.Event = field(default_factory=threading.Event, repr=False)

    def scan(self, image: PlannedImage, layout: Layout, manifest: Manifest, config: ImageConfig) -> ImageScan:
        """Every layer and the config, for future history and fixtures."""
        with self.reporter.step(f"{image.id}: scan {len(manifest.view.layers)} layers"):
            rules = make_rules(self.plan, image)
            return scan_store(layout, manifest, rules, self.scans)[0]

    def check(self, image: PlannedImage, manifest: Manifest, config: ImageConfig, image_id: str) -> Examination:
        """The behavioural suite, in containers of that image id."""
        scenarios = make_scenarios(self.plan, image, self.examine_vendored)
        total = sum(len(scenario.statements) for scenario in scenarios)
        with self.reporter.step(f"{image.id}: {total} checks", total):
            run = run_timed_suite(scenarios, lambda: self._bench(image, manifest, config, image_id), WORKERS)
            with self._bench(image, manifest, config, image_id) as bench:
                schema = self.probe.fetch_schema(bench.container.url)
        report = CheckReport(image=image.id, manifest_digest=manifest.digest, results=run.results)
        return Examination(report, run.durations_s, schema)

    def stop(self) -> None:
        """Remove the containers, so that whoever waits for one of them fails, and start no more."""
        self._stopped.set()
        self.engine.remove_leftovers()

    @contextmanager
    def _bench(self, image: PlannedImage, manifest: Manifest, config: ImageConfig, image_id: str) -> Iterator[Bench]:
        self._require_going_on(image)
        limits = ContainerLimits()
        with self.engine.run(image_id, name=f"{image.id}-{next(self._numbers)}", limits=limits) as container:
            ready_s = self.probe.wait_ready(container.url, self._stopped.is_set)
            self._require_going_on(image)
            yield Bench(
                container,
                lambda: self.probe.open_arena(container.url),
                manifest,
                config,
                self.probe.validate,
                self.probe.play_framework,
                ready_s,
            )

    def _require_going_on(self, image: PlannedImage) -> None:
        if self._stopped.is_set():
            raise ServiceError("the run was interrupted", where=image.id, remedy="run it again")
