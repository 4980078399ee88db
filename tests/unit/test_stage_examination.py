"""The examiner's suites end at once when they are stopped, wherever each of them waits."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from pipeline.adapters.probe import wait_ready
from pipeline.errors import ServiceError
from pipeline.model.oci import ImageConfig
from pipeline.scan.record import LayerScan
from pipeline.stages.examination import ImageExaminer, ServerProbe
from pipeline.stages.examiner import run_together
from pipeline.stages.scanning import FolderCache, MemoryCache
from tests.fakes.engine import FakeEngine
from tests.fakes.release import REPAIR, ROOT, TinyWorld


def unused(*_: Any) -> Any:
    raise AssertionError("nothing is played here")


def make_examiner(world: TinyWorld, **known: object) -> ImageExaminer:
    needed = {each.name: unused for each in fields(ImageExaminer) if not each.name.startswith("_")}
    return ImageExaminer(**{**needed, "plan": world.plan, "reporter": world.reporter, **known})


def test_a_scan_of_an_earlier_run_is_believed_only_by_who_is_given_it(tmp_path: Path) -> None:
    world = TinyWorld(tmp_path / "release")
    world.build()
    image, layout = world.plan.image(REPAIR), world.layout(REPAIR)
    manifest = layout.load_manifest(layout.load_index().manifests[0])
    config = ImageConfig(layout.open(manifest.view.config.digest).read())
    folder = world.paths.cache / "scans"
    for path in folder.iterdir():
        record = LayerScan.load(path.read_bytes(), str(path))
        path.write_bytes(record.model_copy(update={"entries": 12_345}).to_bytes())
    stale, fresh = (
        make_examiner(world, scans=scans).scan(image, layout, manifest, config)
        for scans in (FolderCache(folder), MemoryCache())
    )
    assert {layer.entries for layer in stale.layers} == {12_345}
    assert 12_345 not in {layer.entries for layer in fresh.layers}


def test_suites_that_wait_for_servers_end_when_stopped(tmp_path: Path) -> None:
    world = TinyWorld(tmp_path / "release")
    shutil.copy(ROOT / "policies/openenv-schema.json", world.root / "policies")
    world.build()
    image, layout = world.plan.image(REPAIR), world.layout(REPAIR)
    manifest = layout.load_manifest(layout.load_index().manifests[0])
    engine, waiting = FakeEngine(), threading.Event()

    def wait_for_nobody(url: str, is_over: Callable[[], bool]) -> float:
        waiting.set()
        return wait_ready("http://127.0.0.1:1", is_over, 60)

    probe = ServerProbe(unused, wait_for_nobody, unused, unused, unused)
    examiner = make_examiner(world, engine=engine, probe=probe)
    image_id = engine.load(layout, manifest, "waits")
    stopper = threading.Thread(target=lambda: (waiting.wait(10), examiner.stop()))
    stopper.start()
    started = time.monotonic()
    with pytest.raises(ServiceError, match="interrupted"):
        examiner.check(image, manifest, engine.images[image_id], image_id)
    stopper.join()
    assert time.monotonic() - started < 10
    assert engine.containers == {}


def test_an_interrupt_while_suites_run_stops_them_and_passes_through() -> None:
    stopped = threading.Event()

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_together([lambda: stopped.wait(30) and None, interrupted], _stop_soon(stopped))
    assert stopped.is_set()


def _stop_soon(stopped: threading.Event) -> Callable[[], None]:
    # `wait` returns when all have ended, so something has to end the first: here a timer stands for the signal
    threading.Timer(0.2, stopped.set).start()
    return stopped.set


def test_all_suites_end_before_the_first_failure_is_raised() -> None:
    ended = []

    def fail() -> None:
        raise ServiceError("the first")

    def end_later() -> None:
        time.sleep(0.1)
        ended.append(True)

    with pytest.raises(ServiceError, match="the first"):
        run_together([fail, end_later], lambda: None)
    assert ended == [True]


def test_no_suite_at_all_is_no_result() -> None:
    assert run_together([], lambda: None) == ()
