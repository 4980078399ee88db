"""How fast an environment is, whole path: a WebSocket from outside the container, one request after another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from statistics import median
from typing import TYPE_CHECKING

from pipeline.bench.containers import MRI_NUFFT, PYROMAT, find_task, find_workflow, loaded, serving
from pipeline.bench.figures import Figure, make_figure, not_measured, time_runs
from pipeline.bench.goals import IMAGES
from pipeline.errors import PipelineError
from pipeline.files import read_bytes_limited
from pipeline.plan import PlannedImage
from pipeline.ports import Container
from pipeline.stages.fileset import MAX_FILE_BYTES
from pipeline.suites.scriptfile import load_inspection
from pipeline.suites.workflow_spec import load_cases
from pipeline.world import World

if TYPE_CHECKING:
    from pipeline.adapters.arena import WebSocketArena

RUNS = 50
SESSIONS = 1000
AGENT = "2000:2000"
_REPEAT = """
import json, subprocess, sys, time
samples = []
for _ in range(int(sys.argv[1])):
    started = time.perf_counter()
    subprocess.run(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    samples.append(time.perf_counter() - started)
print(json.dumps(samples))
"""
# three changed files, two new ones, one gone: what an agent does between two resets, in tracked files of any repository
SMALL_EDITS = """
set -e
git ls-files '*.py' | head -40 | tail -3 | while read -r file; do echo '# edited' >> "$file"; done
mkdir -p notes; echo one > notes/one.txt; echo two > two.txt
rm -f "$(git ls-files '*.py' | head -30 | tail -1)"
"""


def measure_images(world: World) -> Iterator[Figure]:
    """Every figure of the group, PYroMat first."""
    with world.lock("bench"):
        pyromat = find_task(world, PYROMAT)
        if pyromat is not None:
            yield from _measure_pyromat(world, pyromat)
        else:
            names = ("reset-pyromat", "shell-true", "finish-unsolved", "finish-solved", "memory-idle", "memory-growth")
            yield from (_absent(name, PYROMAT) for name in names)
        yield from _measure_mri_nufft(world)
        yield _measure_software(world, find_workflow(world))


def _measure_pyromat(world: World, image: PlannedImage) -> Iterator[Figure]:
    with loaded(world, image) as image_id:
        with serving(world, image_id, "endurance") as container, world.reporter.step(f"{SESSIONS} sessions"):
            yield from _memory(container)
        with serving(world, image_id, "pyromat") as container:
            arena = _open(container)
            with world.reporter.step("reset and shell"):
                yield _reset("reset-pyromat", arena)
                samples = time_runs(lambda: arena.shell("true"), RUNS)
                state = _median_ms(time_runs(lambda: arena.exchange('{"type": "state"}'), RUNS))
                alone = _inside(container, ["/bin/bash", "-c", "true"], RUNS)
                beside = (
                    f"`bash -c true` started by a small process in the container {alone}, a `state` request {state}"
                )
                yield _figure("shell-true", samples, reference=beside)
            with world.reporter.step("finish"):
                yield from _finish(arena, image, container)
            arena.close()


def _measure_mri_nufft(world: World) -> Iterator[Figure]:
    image = find_task(world, MRI_NUFFT)
    if image is None:
        yield _absent("reset-mri-nufft", MRI_NUFFT)
        return
    with loaded(world, image) as image_id, serving(world, image_id, "mri-nufft") as container:
        arena = _open(container)
        with world.reporter.step("reset of MRI-NUFFT"):
            yield _reset("reset-mri-nufft", arena)
        arena.close()


def _measure_software(world: World, image: PlannedImage) -> Figure:
    path = image.source.definition_path / "cases.json"
    cases = load_cases(read_bytes_limited(path, MAX_FILE_BYTES).decode(), str(path))
    with loaded(world, image) as image_id, serving(world, image_id, "software") as container:
        arena, numbers = _open(container), iter(range(RUNS + 1))
        arena.reset(cases[0].id)
        samples = time_runs(
            lambda: arena.reset(cases[next(numbers) % len(cases)].id),
            RUNS,
            lambda: arena.shell("echo '{}' > answer.json; echo x > scratch"),
        )
        arena.close()
    return _figure("reset-software", samples, note=f"another of {len(cases)} cases each time, two files written before")


def _reset(name: str, arena: WebSocketArena) -> Figure:
    arena.reset()
    samples = time_runs(arena.reset, RUNS, lambda: _act(arena, SMALL_EDITS))
    untouched = time_runs(arena.reset, RUNS)
    return _figure(name, samples, reference=f"reset of an untouched workspace: {_median_ms(untouched)}")


def _finish(arena: WebSocketArena, image: PlannedImage, container: Container) -> Iterator[Figure]:
    repair, record = _repair_command(image), _read_record(image)
    unsolved = time_runs(arena.finish, RUNS, arena.reset)

    def solve() -> None:
        arena.reset()
        _act(arena, repair)

    rewards: set[object] = set()
    solved = time_runs(lambda: rewards.add(arena.finish().get("reward")), RUNS, solve)
    if rewards != {1.0}:
        raise PipelineError(f"a solved task scored {rewards}", where=image.id, remedy="run: nox -s verify")
    alone = _inside(container, ["/bin/bash", "-c", f"cd {record['cwd']}; {record['test_command']}"], 10)
    beside = f"the test command in the container, without the hidden tests: {alone}"
    yield _figure("finish-unsolved", unsolved, reference=beside)
    yield _figure("finish-solved", solved, reference=beside)


def _repair_command(image: PlannedImage) -> str:
    assert image.source.task is not None, "a repair has a task"
    path = image.source.definition_path / image.source.task.reference_repair
    text = read_bytes_limited(path, MAX_FILE_BYTES).decode()
    return f"git apply - <<'END_OF_REFERENCE'\n{text}END_OF_REFERENCE"


def _read_record(image: PlannedImage) -> dict[str, str]:
    assert image.source.task is not None, "a repair has a task"
    assert image.source.task_path is not None, "config refuses a task without a folder"
    record: dict[str, str] = json.loads(
        read_bytes_limited(image.source.task_path / image.source.task.record, MAX_FILE_BYTES)
    )
    return record


def _inside(container: Container, argv: list[str], runs: int) -> str:
    """The median of a command that a small program in the container starts as the agent: the least that it takes."""
    program = ["/usr/bin/python3", "-I", "-c", _REPEAT, str(runs), *argv]
    done = container.exec(program, user=AGENT, timeout_s=120)
    if done.exit_code != 0:
        raise PipelineError("a command did not run in the container", where=" ".join(argv)[:200])
    return _median_ms(json.loads(done.output))


def _memory(container: Container) -> Iterator[Figure]:
    _sessions(container, 1)
    idle = _server_memory(container)
    note = "resident memory of process 1 after one session"
    yield _figure("memory-idle", [idle], note=f"{note}; the whole container {container.memory_bytes() / 1e6:.0f} MB")
    _sessions(container, SESSIONS)
    after = _server_memory(container)
    note = f"{idle / 1e6:.1f} MB, then {after / 1e6:.1f} MB"
    yield _figure("memory-growth", [after / idle - 1], note=f"{note}; each session opens, resets and leaves")


def _sessions(container: Container, count: int) -> None:
    url = container.url
    for _ in range(count):
        arena = _open_url(url)
        arena.reset()
        arena.close()


def _server_memory(container: Container) -> float:
    done = container.exec(["/usr/bin/python3", "-I", "-c", load_inspection("server")])
    return float(json.loads(done.output)["memory"]) * 1024


def _act(arena: WebSocketArena, command: str) -> None:
    observation = arena.shell(command).get("observation")
    if not isinstance(observation, dict) or observation.get("exit_code") != 0:
        raise PipelineError(f"an action failed: {str(observation)[:300]}", where=command.strip()[:80])


def _open(container: Container) -> WebSocketArena:
    return _open_url(container.url)


def _open_url(url: str) -> WebSocketArena:
    from pipeline.adapters.arena import open_arena

    return open_arena(url)


def _figure(name: str, samples: list[float], *, reference: str = "", note: str = "") -> Figure:
    return make_figure("images", name, IMAGES[name], samples, reference=reference, note=note)


def _absent(name: str, task: str) -> Figure:
    return not_measured("images", name, f"{task} is not in this release")


def _median_ms(samples: list[float]) -> str:
    return f"{median(samples) * 1e3:.3g} ms"
