"""One run of the bench: its groups in order, each figure as it comes, and the record of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from pipeline.adapters.machine import Machine, read_date, read_load, read_machine
from pipeline.bench.figures import Figure
from pipeline.bench.goals import GOALS
from pipeline.bench.images import measure_images
from pipeline.bench.release import measure_release
from pipeline.bench.scan import measure_scan
from pipeline.bench.sigstore import measure_sigstore
from pipeline.errors import ServiceError, UsageError
from pipeline.model.record import Record
from pipeline.world import World

GROUPS: Mapping[str, Callable[[World], Iterator[Figure]]] = {
    "release": measure_release,
    "images": measure_images,
    "scan": measure_scan,
    "sigstore": measure_sigstore,
}


class BenchRun(Record):
    """What was measured, where and when. Loads are averages of a minute, before and after."""

    date: str
    cores: int
    memory_bytes: int
    kernel: str
    python: str
    system: str
    load_before: float
    load_after: float
    figures: tuple[Figure, ...]


def choose_groups(names: Sequence[str]) -> tuple[str, ...]:
    """The named groups in their order, all of them where none is named; UsageError for another word."""
    unknown = [name for name in names if name not in GROUPS]
    if unknown:
        raise UsageError(f"no such group of figures: {unknown[0]!r}", remedy=f"one of: {', '.join(GROUPS)}")
    return tuple(name for name in GROUPS if not names or name in names)


def measure_group(world: World, group: str) -> tuple[Figure, ...]:
    """Every figure of a group, in the order of its goals; ServiceError when the local services do not run."""
    _check_services(world)
    found = {figure.id: figure for figure in GROUPS[group](world)}
    return tuple(found[name] for name in GOALS[group])


def make_run(load_before: float, figures: Sequence[Figure]) -> BenchRun:
    """The record of figures that were just measured."""
    machine: Machine = read_machine()
    return BenchRun(
        date=read_date(),
        cores=machine.cores,
        memory_bytes=machine.memory_bytes,
        kernel=machine.kernel,
        python=machine.python,
        system=machine.system,
        load_before=load_before,
        load_after=read_load(),
        figures=tuple(figures),
    )


def describe_run(run: BenchRun) -> str:
    """One line: the machine and how busy it was."""
    return (
        f"{run.date}, {run.system}, kernel {run.kernel}, {run.cores} cores, {run.memory_bytes / 1e9:.0f} GB,"
        f" Python {run.python}, load {run.load_before:.1f} before and {run.load_after:.1f} after"
    )


def _check_services(world: World) -> None:
    from pipeline.embedded import services

    if not world.is_embedded:
        return
    down = [one.name for one in services.status(world.services).services if one.state != "ready"]
    if down:
        raise ServiceError(f"not running: {', '.join(down)}", where=str(world.paths.services), remedy="run: nox -s up")
