"""What every engine does, the fake and the real one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline.errors import ConfigError, IntegrityError, ServiceError
from pipeline.layout import Layout
from pipeline.model.oci import Manifest
from pipeline.model.reference import Reference
from pipeline.ports import ContainerLimits, Engine, ExecResult
from tests.fakes.engine import FakeEngine
from tests.fakes.tiny import make_tiny_image

LIMITS = ContainerLimits(memory_bytes=128 << 20, cpus=1.0, pids=64)
UNKNOWN = "sha256:" + "ab" * 32


def perform(argv: Sequence[str], user: str, stdin: bytes) -> ExecResult:
    """What the tiny image's programs would answer."""
    answers = {("cat",): ExecResult(0, stdin), ("id", "-u"): ExecResult(0, user.partition(":")[0].encode() + b"\n")}
    return answers.get(tuple(argv), ExecResult(3, b"err\n"))


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.services)])
def any_engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if request.param == "fake":
        yield FakeEngine(script=perform)
    else:
        yield request.getfixturevalue("engine")


@dataclass(frozen=True)
class Loaded:
    engine: Engine
    image_id: str
    manifest: Manifest


@pytest.fixture
def loaded(any_engine: Engine, tiny_image: tuple[Layout, Manifest]) -> Iterator[Loaded]:
    layout, manifest = tiny_image
    image_id = any_engine.load(layout, manifest, "tiny")
    yield Loaded(any_engine, image_id, manifest)
    any_engine.remove_image(image_id)


def test_a_loaded_image_is_named_by_its_config(loaded: Loaded) -> None:
    assert loaded.image_id == loaded.manifest.view.config.digest


def test_loading_twice_is_loading_once(loaded: Loaded, tiny_image: tuple[Layout, Manifest]) -> None:
    assert loaded.engine.load(*tiny_image, "tiny") == loaded.image_id


@pytest.mark.parametrize("which", ["layer", "config"])
def test_a_tampered_store_is_refused(
    any_engine: Engine, tiny_image: tuple[Layout, Manifest], tmp_path: Path, which: str
) -> None:
    original, manifest = tiny_image
    shutil.copytree(original.folder, tmp_path / "copy")
    store = Layout(tmp_path / "copy")
    view = manifest.view
    victim = store.path(view.config.digest if which == "config" else view.layers[-1].digest)
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(data)
    with pytest.raises(IntegrityError):
        any_engine.load(store, manifest, "tampered")


def test_a_command_gives_output_and_exit_code(loaded: Loaded) -> None:
    with loaded.engine.run(loaded.image_id, name="commands", limits=LIMITS) as container:
        assert container.exec(["sh", "-c", "echo err >&2; exit 3"]) == ExecResult(3, b"err\n")
        assert container.exec(["cat"], stdin=b"\0\xff" * 50_000) == ExecResult(0, b"\0\xff" * 50_000)
        assert container.exec(["id", "-u"], user="2000:2000").output == b"2000\n"


def test_two_containers_of_one_name_run_side_by_side(loaded: Loaded) -> None:
    with (
        loaded.engine.run(loaded.image_id, name="same", limits=LIMITS) as one,
        loaded.engine.run(loaded.image_id, name="same", limits=LIMITS) as other,
    ):
        assert one.id != other.id


def test_nothing_is_left_whatever_happens_inside(loaded: Loaded) -> None:
    for failure in (KeyboardInterrupt, SystemExit, ValueError):
        with pytest.raises(failure), loaded.engine.run(loaded.image_id, name="fails", limits=LIMITS):
            raise failure
    assert loaded.engine.remove_leftovers() == 0


def test_a_container_that_was_not_left_properly_is_a_leftover(loaded: Loaded) -> None:
    context = loaded.engine.run(loaded.image_id, name="killed", limits=LIMITS)
    container = context.__enter__()
    assert loaded.engine.remove_leftovers() == 1
    with pytest.raises(ServiceError):
        container.exec(["id", "-u"])
    with suppress(ServiceError):
        context.__exit__(None, None, None)


def test_stopping_takes_time_and_removing_twice_is_fine(loaded: Loaded) -> None:
    with loaded.engine.run(loaded.image_id, name="stops", limits=LIMITS) as container:
        assert 0 < container.stop(timeout_s=1) < 5
        container.remove()
        container.remove()


def test_measurements_are_of_this_container(loaded: Loaded) -> None:
    with loaded.engine.run(loaded.image_id, name="measured", limits=LIMITS) as container:
        assert 0 < container.memory_bytes() < LIMITS.memory_bytes
        assert container.writable_bytes() == 0


def test_what_does_not_exist_is_refused(any_engine: Engine) -> None:
    with pytest.raises(ServiceError), any_engine.run(UNKNOWN, name="nothing", limits=LIMITS):
        pass
    any_engine.remove_image(UNKNOWN)
    with pytest.raises(ConfigError, match="a pull needs a digest"):
        any_engine.pull(Reference("127.0.0.1:5720", "nothing", tag="latest"))
    with pytest.raises(ServiceError):
        any_engine.pull(Reference("127.0.0.1:1", "nothing", digest=UNKNOWN))


def test_an_image_without_a_port_is_refused(any_engine: Engine, tmp_path: Path) -> None:
    image_id = any_engine.load(*make_tiny_image(tmp_path, port=False), "portless")
    with (
        pytest.raises(ConfigError, match="must expose one TCP port"),
        any_engine.run(image_id, name="p", limits=LIMITS),
    ):
        pass
    any_engine.remove_image(image_id)


def test_an_engine_that_died_says_so() -> None:
    engine = FakeEngine()
    engine.dies()
    with pytest.raises(ServiceError, match="does not answer"):
        engine.remove_leftovers()
