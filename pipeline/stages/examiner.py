"""What build and verify both do to an image on disk: scan every layer, and play the behavioural suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pydantic import JsonValue

from pipeline.layout import Layout
from pipeline.model.finding import CheckReport
from pipeline.model.oci import ImageConfig, Manifest
from pipeline.plan import PlannedImage
from pipeline.scan.record import ImageScan

Result = TypeVar("Result")


@dataclass(frozen=True)
class Examination:
    """The suite's results, how long each check took in seconds, and the documents that /schema served, by name."""

    report: CheckReport
    durations: Mapping[str, float]
    schema: Mapping[str, JsonValue]


class Examiner(Protocol):
    """Looks at an image on disk; the same before publication and after the pull."""

    def scan(self, image: PlannedImage, layout: Layout, manifest: Manifest, config: ImageConfig) -> ImageScan:
        """Every layer and the config, for future history and fixtures. IntegrityError when a diff_id is wrong."""

    def check(self, image: PlannedImage, manifest: Manifest, config: ImageConfig, image_id: str) -> Examination:
        """The behavioural suite, in containers of that image id."""

    def stop(self) -> None:
        """End every check that is running, from another thread: after an interrupt nobody waits for results."""


def run_together(tasks: Sequence[Callable[[], Result]], stop: Callable[[], None]) -> tuple[Result, ...]:
    """Run the suites of several images at once: most checks wait. Results are in the order asked.

    All of them end before the first failure is raised; an interrupt calls `stop`, which makes them end at once.
    """
    if not tasks:
        return ()
    pool = ThreadPoolExecutor(len(tasks))
    try:
        futures = [pool.submit(task) for task in tasks]
        wait(futures)
        return tuple(future.result() for future in futures)
    except KeyboardInterrupt:
        stop()
        raise
    finally:
        pool.shutdown()
