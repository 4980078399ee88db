"""Task images without network: what is refused before any work, and layers that come from the cache."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.derive.layer import Entry, make_layer
from pipeline.embedded import debianroot, pip_source, taskimage
from pipeline.embedded.layercache import Content, LayerCache
from pipeline.embedded.taskimage import Sources, make_task_image
from pipeline.errors import ConfigError, ServiceError
from pipeline.model.material import Material
from pipeline.model.release import Debian, ImageDefinition, TaskDefinition
from tests.fakes.images import MemoryBlobs

EPOCH_S = 1_760_227_200
HEX = "ab" * 32
MATERIAL = Material(uri="pkg:pypi/a@1", name="a", version="1", kind="wheel", digests={"sha256": HEX})
IMAGE = {
    "version": 1,
    "title": "t",
    "description": "d",
    "licences": "Apache-2.0",
    "suite": "repair",
    "base": "task",
    "debian": {"suite": "bookworm", "packages": ["bash"]},
    "layers": [{"name": "runtime", "wheels": "runtime.lock", "path": "/opt/r"}],
    "runtime": {"user": "root", "working_dir": "/", "cmd": ["x"], "port": 8000, "stop_signal": "SIGTERM"},
    "fixtures": {"paths": ["fixtures"]},
}
TASK = {
    "version": 1,
    "id": "t",
    "title": "t",
    "record": "record.json",
    "record_sha256": HEX,
    "repository": {
        "project": "p",
        "lock": "sdists.lock",
        "base_version": "1",
        "removed": [{"file": "m.py", "function": "f"}],
    },
    "packages": "packages.lock",
    "base_commit": "0" * 40,
    "future": "future.txt",
    "reference_repair": "r.patch",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "packages.lock").write_text(f"numpy==1 --hash=sha256:{HEX}\n")
    (tmp_path / "sdists.lock").write_text(f"1 {HEX} p-1.tar.gz\n2 {HEX} p-2.tar.gz\n")
    (tmp_path / "record.json").write_text('{"cwd": "/workspace/repo"}')
    return tmp_path


def make(folder: Path, image: dict[str, object] = IMAGE) -> None:
    definition = ImageDefinition.model_validate_json(json.dumps(image))
    task = TaskDefinition.model_validate_json(json.dumps(TASK))
    make_task_image(definition, task, folder, Sources(folder / "cache"), MemoryBlobs(), EPOCH_S)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ServiceError("the network was used")

    for name in ("fetch_root", "fetch_wheels", "fetch_sdists"):
        monkeypatch.setattr(taskimage, name, refuse)


def test_an_image_without_a_debian_section_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match="debian section"):
        make(folder, {**IMAGE, "debian": None})


@pytest.mark.parametrize(
    "record",
    ["{", "[]", "{}", '{"cwd": 3}', '{"cwd": "repo"}', '{"cwd": "/a/../b"}', '{"cwd": "/"}', '{"cwd": "/a//b"}'],
)
def test_a_record_without_a_usable_cwd_is_refused_before_any_work(record: str, folder: Path) -> None:
    (folder / "record.json").write_text(record)
    with pytest.raises(ConfigError) as caught:
        make(folder)
    assert caught.value.where == str(folder / "record.json")


@pytest.mark.parametrize("name", ["record.json", "packages.lock", "sdists.lock"])
def test_a_missing_file_is_refused_before_any_work(name: str, folder: Path) -> None:
    (folder / name).unlink()
    with pytest.raises(ConfigError):
        make(folder)


def test_a_source_that_does_not_answer_ends_the_build(folder: Path) -> None:
    with pytest.raises(ServiceError, match="the network was used"):
        make(folder)


def content(data: bytes = b"x") -> Content:
    return Content((Entry("a", data=data),), (MATERIAL,), ("a note",))


def test_a_layer_is_made_once_and_is_the_writers(tmp_path: Path) -> None:
    cache, made = LayerCache(tmp_path, EPOCH_S), []

    def make_content() -> Content:
        made.append(1)
        return content()

    first, second = MemoryBlobs(), MemoryBlobs()
    one = cache.fetch("part", ["in"], make_content, first)
    assert LayerCache(tmp_path, EPOCH_S).fetch("part", ["in"], make_content, second) == one
    assert len(made) == 1
    packed, facts = make_layer(content().entries, EPOCH_S)
    assert first.blobs == second.blobs == {facts.digest: packed}
    assert (one.layer.digest, one.layer.diff_id, one.layer.size) == (facts.digest, facts.diff_id, facts.size)
    assert (one.materials, one.notes) == ((MATERIAL,), ("a note",))


@pytest.mark.parametrize(
    ("name", "inputs", "epoch_s"), [("other", ["in"], EPOCH_S), ("part", ["b"], EPOCH_S), ("part", ["in"], 1)]
)
def test_another_name_input_or_time_is_another_layer(
    name: str, inputs: list[str], epoch_s: int, tmp_path: Path
) -> None:
    LayerCache(tmp_path, EPOCH_S).fetch("part", ["in"], lambda: content(b"first"), MemoryBlobs())
    store = MemoryBlobs()
    made = LayerCache(tmp_path, epoch_s).fetch(name, inputs, lambda: content(b"second"), store)
    assert store.blobs[made.digest] == make_layer(content(b"second").entries, epoch_s)[0]


@pytest.mark.parametrize("damage", [b"", b"{}", b"not json"])
def test_a_damaged_cache_is_made_again(damage: bytes, tmp_path: Path) -> None:
    cache = LayerCache(tmp_path, EPOCH_S)
    good = cache.fetch("part", ["in"], content, MemoryBlobs())
    for path in (*tmp_path.glob("*.json"), *(tmp_path / "blobs").iterdir()):
        path.write_bytes(damage)
        store = MemoryBlobs()
        assert cache.fetch("part", ["in"], content, store) == good
        assert list(store.blobs) == [good.digest]


def test_a_failing_part_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> Content:
        raise ServiceError("down")

    with pytest.raises(ServiceError):
        LayerCache(tmp_path, EPOCH_S).fetch("part", ["in"], fail, MemoryBlobs())
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_resolved_root_in_the_cache_needs_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(*_: object) -> debianroot.Resolution:
        calls.append(1)
        return debianroot.Resolution(suite="bookworm", packages=())

    calls: list[int] = []
    monkeypatch.setattr(debianroot, "_resolve", resolve)
    debian = Debian(suite="bookworm", packages=("bash",))
    assert debianroot.fetch_root(debian, None, tmp_path) == debianroot.fetch_root(debian, None, tmp_path)
    assert len(calls) == 1
    debianroot.fetch_root(Debian(suite="bookworm", packages=("dash",)), None, tmp_path)
    assert len(calls) == 2


def test_nothing_is_started_for_files_that_are_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(pip_source.subprocess, "run", refuse)
    pip_source.fetch_wheels((), "3.11", Sources(tmp_path).files)
    pip_source.fetch_sdists("p", (), Sources(tmp_path).files)


def test_what_a_killed_run_left_is_removed(tmp_path: Path) -> None:
    sources = Sources(tmp_path)
    sources.remove_leftovers()
    kept = LayerCache(tmp_path / "layers", EPOCH_S).fetch("part", ["in"], content, MemoryBlobs())
    for folder in (tmp_path / "files", tmp_path / "layers/blobs"):
        (folder / ".partial-folder/deep").mkdir(parents=True)
        (folder / ".partial-file").write_bytes(b"half")
    sources.remove_leftovers()
    assert not list(tmp_path.rglob(".partial*"))
    assert LayerCache(tmp_path / "layers", EPOCH_S).fetch("part", ["in"], content, MemoryBlobs()) == kept
