"""An examiner whose scan is the real one and whose suite says what a test wants it to say."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.layout import Layout
from pipeline.model.finding import CheckReport, CheckResult, Outcome
from pipeline.model.oci import ImageConfig, Manifest
from pipeline.paths import Paths
from pipeline.plan import Plan, PlannedImage
from pipeline.ports import Engine, Reporter
from pipeline.scan.record import ImageScan
from pipeline.stages.examiner import Examination
from pipeline.stages.scan import scan_store
from pipeline.stages.scanning import FolderCache, make_rules

CHECKS = ("ready", "reset", "shell")
SCHEMA = json.loads((Path(__file__).parents[2] / "policies" / "openenv-schema.json").read_bytes())


@dataclass
class FakeExaminer:
    """`stages.examiner.Examiner`. `outcomes` are of checks by id, `before` is called as each step begins.

    It asks the engine for a container, as the real one does, so that a dead engine is noticed.
    """

    plan: Plan
    paths: Paths
    engine: Engine
    reporter: Reporter
    checks: tuple[str, ...] = CHECKS
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    schema: Any = field(default_factory=lambda: dict(SCHEMA))
    before: Callable[[str], None] = lambda step: None
    examined: list[str] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def scan(self, image: PlannedImage, layout: Layout, manifest: Manifest, config: ImageConfig) -> ImageScan:
        """Every layer, really."""
        self.before("scan")
        cache = FolderCache(self.paths.cache / "scans")
        return scan_store(layout, manifest, make_rules(self.plan, image), cache)[0]

    def check(self, image: PlannedImage, manifest: Manifest, config: ImageConfig, image_id: str) -> Examination:
        """What the test says."""
        self.before("check")
        self.examined.append(image.id)
        self.engine.remove_leftovers()
        results = tuple(
            CheckResult(
                id=name,
                statement=f"{name} works",
                expected=True,
                observed=self.outcomes.get(name, "pass") == "pass",
                outcome=self.outcomes.get(name, "pass"),
            )
            for name in sorted(self.checks)
        )
        report = CheckReport(image=image.id, manifest_digest=manifest.digest, results=results)
        return Examination(report, dict.fromkeys(self.checks, 0.001), self.schema)

    def stop(self) -> None:
        """Whatever a test made to wait goes on."""
        self.stopped.set()
