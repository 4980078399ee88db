"""What a release costs: bytes, start-up, commands that have nothing to do, the suite, and the same bytes elsewhere."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from pipeline.adapters.machine import Ran, read_load, run_timed
from pipeline.bench.containers import find_workflow, loaded, loaded_without_server, read_built
from pipeline.bench.figures import Figure, make_figure, not_measured, time_runs
from pipeline.bench.goals import RELEASE
from pipeline.errors import StageError
from pipeline.model.stages import BuiltImage
from pipeline.plan import PlannedImage
from pipeline.ports import ContainerLimits
from pipeline.stages.inputs import digest_inputs
from pipeline.world import World

STARTS = 10
COMMANDS = 3
RUNTIME = "runtime"
HOW_FRESH = "on a new Debian machine: time ./noxw -s build publish verify"
# two machines in one: another folder (with a space, not ASCII), umask, locale, time zone and user name
PLACES = (
    ("a b ö", 0o077, {"LC_ALL": "C", "TZ": "Pacific/Kiritimati", "USER": "one", "PYTHONHASHSEED": "1"}),
    ("second", 0o002, {"LC_ALL": "C.UTF-8", "TZ": "America/St_Johns", "USER": "two", "PYTHONHASHSEED": "2"}),
)
SOURCE_PATH = Path(__file__).parent.parent.parent


def measure_release(world: World) -> Iterator[Figure]:
    """Every figure of the group."""
    records = {image.id: read_built(world, image).record for image in world.plan.images}
    software = find_workflow(world)
    yield from _sizes(records, records[software.id])
    _check_current(world, records)
    yield from _commands(world, "build")
    yield from _commands(world, "publish")
    with world.lock("bench"):
        yield _same_digests(world, records)  # before anything is loaded: it removes what other runs left
        yield from _software(world, software)
    yield not_measured("release", "fresh-machine", HOW_FRESH)


def _sizes(records: dict[str, BuiltImage], software: BuiltImage) -> Iterator[Figure]:
    yield _figure("added-bytes", [software.added_bytes], note=f"base {software.base}")
    runtimes = {layer.digest: layer.size for one in records.values() for layer in one.layers if layer.name == RUNTIME}
    if not runtimes:
        yield not_measured("release", "runtime-bytes", "no image has a layer called runtime")
        yield not_measured("release", "runtime-digests", "no image has a layer called runtime")
        return
    yield _figure("runtime-bytes", [max(runtimes.values())])
    yield _figure("runtime-digests", [len(runtimes)], note=f"in {len(records)} images: {', '.join(sorted(runtimes))}")


def _check_current(world: World, records: dict[str, BuiltImage]) -> None:
    """What is measured is that nothing is to be done: refuse to start a whole build instead."""
    revision = world.revision
    for image in world.plan.images:
        below = records.get(image.base)
        inputs = digest_inputs(world.plan, image, below.manifest_digest if below else None, revision)
        if records[image.id].inputs != inputs or not (world.paths.published(image.id) / "record.json").is_file():
            raise StageError(
                f"{image.id} is not built and published from these files",
                where=str(world.paths.built(image.id)),
                remedy="run: nox -s build publish, then bench again",
            )


def _commands(world: World, verb: str) -> Iterator[Figure]:
    root = world.paths.root
    arguments = ["--target", world.plan.target_name]
    alone = [sys.executable, "-m", "pipeline", verb, *arguments]
    yield _timed(world, f"{verb}-unchanged", alone)
    nox = Path(sys.executable).with_name("nox")
    if not (root / ".nox" / "pipeline" / "lock.sha256").is_file() or not nox.is_file():
        yield not_measured("release", f"{verb}-unchanged-nox", "no environment of nox here: run it through ./noxw")
        return
    yield _timed(world, f"{verb}-unchanged-nox", [str(nox), "-s", verb, "--", *arguments])


def _timed(world: World, name: str, argv: list[str]) -> Figure:
    with world.reporter.step(f"{name}, {COMMANDS} times"):
        ran = [run_timed(argv, folder=world.paths.root) for _ in range(COMMANDS)]
        start = run_timed([sys.executable, "-c", "pass"], folder=world.paths.root)
    cpu_s = median(one.cpu_seconds for one in ran)
    beside = f"starting Python: {start.seconds:.2f} s"
    return _figure(name, [one.seconds for one in ran], reference=beside, note=f"{cpu_s:.2f} s of a processor")


def _same_digests(world: World, records: dict[str, BuiltImage]) -> Figure:
    revision = world.revision
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        world.reporter.note(f"derive {len(records)} images in two places")
        with ThreadPoolExecutor(len(PLACES)) as pool:
            ran = list(pool.map(lambda place: _derive(world, Path(folder), place, revision), PLACES))
    digests = [json.loads(one.output) for one in ran]
    built = {name: record.manifest_digest for name, record in records.items()}
    other = {name for name in records if any(found.get(name) != built[name] for found in digests)}
    note = "; ".join(f"umask {umask:03o}, {zone['LC_ALL']}, {zone['TZ']}" for _, umask, zone in PLACES)
    note = f"{len(records)} images; built, and derived again with {note}; seconds each: {_seconds(ran)}"
    return _figure("same-digests", [len(other)], note=note)


def _derive(world: World, folder: Path, place: tuple[str, int, dict[str, str]], revision: str) -> Ran:
    name, umask, variables = place
    release = str(world.plan.release.root / "release.yaml")
    command = [sys.executable, "-m", "pipeline.bench", "derive", release, world.plan.target_name, revision]
    return run_timed([*command, str(folder / name)], folder=SOURCE_PATH, variables=variables, umask=umask)


def _software(world: World, image: PlannedImage) -> Iterator[Figure]:
    built = read_built(world, image)
    with loaded(world, image) as image_id:
        with world.reporter.step(f"docker run, {STARTS} times"), loaded_without_server(world, image) as sleeping:
            bare = [_start(world, sleeping, answers=False) for _ in range(STARTS)]
            starts = [_start(world, image_id, answers=True) for _ in range(STARTS)]
        beside = f"a container of the same layers without a server, until it runs: {median(bare):.2f} s"
        yield _figure("health", starts, reference=beside, note="sequential; removing it is not counted")
        examined = []
        seconds = time_runs(
            lambda: examined.append(world.examiner.check(image, built.manifest, built.config, image_id)), 1
        )
    report = examined[0].report
    note = f"{len(report.failed)} checks do not pass; load average at the end {read_load():.1f}"
    yield _figure("suite", seconds, note=note)
    yield _figure("suite-checks", [len(report.results)])


def _start(world: World, image_id: str, *, answers: bool) -> float:
    """Seconds from asking the engine until the container runs or its server answers; removed afterwards, untimed."""
    from pipeline.adapters.probe import wait_ready

    started = time.perf_counter()
    with world.engine.run(image_id, name="bench-start", limits=ContainerLimits()) as container:
        if answers:
            wait_ready(container.url)
        return time.perf_counter() - started


def _seconds(ran: list[Ran]) -> str:
    return ", ".join(f"{one.seconds:.1f}" for one in ran)


def _figure(name: str, samples: list[float] | list[int], *, reference: str = "", note: str = "") -> Figure:
    return make_figure("release", name, RELEASE[name], samples, reference=reference, note=note)
