"""What the bench measures on: made the same every time, of the size it says, and processed to right results."""

from __future__ import annotations

import json
import random
import sys
import tarfile
from pathlib import Path

import pytest

from pipeline.__main__ import main
from pipeline.adapters.machine import read_load, read_machine, run_timed
from pipeline.bench.containers import with_command
from pipeline.bench.derive import INPUTS, copy_inputs
from pipeline.bench.histories import large_history, make_stream
from pipeline.bench.scan import rewrite_one_of_five
from pipeline.bench.speed import hash_layers, scan_layers, strip_history, walk_layers
from pipeline.bench.synthetic import (
    CONTENT_BYTES,
    FILES,
    LARGE_BYTES,
    LAYERS,
    MEDIA_TYPE,
    make_sizes,
    ordinary_layers,
)
from pipeline.errors import PipelineError, ServiceError
from pipeline.layout import Layout
from pipeline.model.oci import OCI_CONFIG, OCI_MANIFEST, ImageConfig, Manifest
from pipeline.model.record import canonical_json

ROOT = Path(__file__).parents[2]
SMALL_FILES, SMALL_BYTES = 60, 400_000


@pytest.fixture(scope="module")
def layers(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return ordinary_layers(tmp_path_factory.mktemp("layers"), SMALL_FILES, SMALL_BYTES)


def test_the_whole_set_is_as_large_as_the_image_it_stands_for() -> None:
    sizes = make_sizes(random.Random(1), FILES, CONTENT_BYTES)
    assert len(sizes) == 23_918
    assert sizes.count(LARGE_BYTES) == 2
    assert sum(sizes) == pytest.approx(CONTENT_BYTES, rel=1e-4)
    largest = sorted(sizes, reverse=True)[: FILES // 20]
    assert sum(largest) > CONTENT_BYTES / 2


def test_layers_are_the_same_every_time_and_made_once(layers: list[Path], tmp_path: Path) -> None:
    again = ordinary_layers(tmp_path, SMALL_FILES, SMALL_BYTES)
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in layers]
    assert len(again) == LAYERS
    again[0].write_bytes(b"kept")
    assert ordinary_layers(tmp_path, SMALL_FILES, SMALL_BYTES)[0].read_bytes() == b"kept"
    assert ordinary_layers(tmp_path, SMALL_FILES + 5, SMALL_BYTES)[0].read_bytes() != b"kept"


def test_half_of_the_files_are_text(layers: list[Path]) -> None:
    texts = files = 0
    for path in layers:
        with tarfile.open(path, "r:*") as tar:
            for member in tar:
                content = tar.extractfile(member)
                assert content is not None
                files += 1
                texts += member.name.endswith(".py")
                assert member.name.endswith(".py") == content.read().isascii() or member.size < 4
    assert files == SMALL_FILES
    assert SMALL_FILES / 4 < texts < SMALL_FILES * 3 / 4


def test_scan_hash_and_walk_see_the_same_bytes(layers: list[Path]) -> None:
    place = f"format-code-task-000666=local={ROOT / 'release.yaml'}"
    scanned = scan_layers([place, *(f"{path}={MEDIA_TYPE}" for path in layers)])
    hashed, walked = hash_layers([str(path) for path in layers]), walk_layers([str(path) for path in layers])
    assert isinstance(scanned, dict)
    assert isinstance(hashed, dict)
    assert isinstance(walked, dict)
    assert scanned["entries"] == SMALL_FILES
    assert scanned["unpacked_bytes"] == hashed["unpacked_bytes"]
    assert int(str(scanned["unpacked_bytes"])) > SMALL_BYTES
    assert int(str(scanned["peak_bytes"])) > 10_000_000
    assert set(walked) == {"cpu_seconds"}


def test_a_history_is_the_same_every_time_and_its_strip_keeps_what_the_base_reaches(tmp_path: Path) -> None:
    made = large_history(tmp_path / "one", 40, 10)
    assert large_history(tmp_path / "two", 40, 10).base_commit == made.base_commit
    assert large_history(tmp_path / "one", 40, 10) == made
    git = ["git", "-c", "safe.directory=*", "rev-list", "--count"]
    assert run_timed([*git, "main"], folder=made.path).output == b"30\n"
    assert run_timed([*git, "next"], folder=made.path).output == b"40\n"
    listed = run_timed(
        ["git", "-c", "safe.directory=*", "rev-list", "--objects", made.base_commit], folder=made.path
    ).output
    stripped = strip_history([str(made.path), made.base_commit])
    assert isinstance(stripped, dict)
    assert stripped["kept"] == listed.count(b"\n")
    assert int(str(stripped["dropped"])) >= 10 * 5


def test_every_commit_changes_a_file() -> None:
    stream = b"".join(make_stream(30, 5))
    commits = stream.split(b"commit refs/heads/")[1:]
    assert len(commits) == 30
    assert commits[0].count(b"M 100644 inline ") == 2000
    assert {commit.count(b"M 100644 inline ") for commit in commits[1:]} == {1, 2}
    assert sum(commit.startswith(b"next\n") for commit in commits) == 5
    assert stream.count(b"from refs/heads/main\n") == 1


def test_one_layer_of_five_is_written_anew() -> None:
    assert rewrite_one_of_five() == (1, 4)


def test_another_command_changes_the_config_and_no_layer(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    asked = {"Cmd": ["serve"], "User": "root"}
    config = ImageConfig(canonical_json({"config": asked, "rootfs": {"type": "layers", "diff_ids": []}}))
    descriptor = {"mediaType": OCI_CONFIG, "digest": config.digest, "size": len(config.raw)}
    document = {"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": descriptor, "layers": []}
    made = with_command(Manifest(canonical_json(document), OCI_MANIFEST), config, ["/bin/sleep", "600"], layout)
    assert made.view.layers == ()
    with layout.open(made.view.config.digest) as blob:
        assert json.loads(blob.read())["config"] == {"Cmd": ["/bin/sleep", "600"], "User": "root"}


def test_inputs_are_copied_as_a_clone_writes_them(tmp_path: Path) -> None:
    root, folder = tmp_path / "root", tmp_path / "copy"
    for name in INPUTS:
        path = root / name / "file" if "." not in name else root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        path.chmod(0o640)
    (root / "images" / "run").write_text("#!/bin/sh\n")
    (root / "images" / "run").chmod(0o755)
    (root / "pipeline" / "__pycache__").mkdir()
    (root / "pipeline" / "__pycache__" / "x.pyc").write_bytes(b"\0")
    folder.mkdir()
    assert copy_inputs(root, folder, tmp_path / "cache") == folder / "release.yaml"
    assert (folder / "images" / "file").read_text() == "images"
    assert (folder / "images" / "run").stat().st_mode & 0o100
    assert not (folder / "policies" / "file").stat().st_mode & 0o100
    assert not (folder / "pipeline" / "__pycache__").exists()
    assert (folder / ".pipeline" / "cache").readlink() == tmp_path / "cache"


def test_a_command_gets_its_variables_umask_and_input(tmp_path: Path) -> None:
    script = "umask; echo $ZONE; cat; pwd"
    ran = run_timed(["sh", "-c", script], folder=tmp_path, variables={"ZONE": "a b"}, umask=0o077, stdin=b"in\n")
    assert ran.output.decode().splitlines() == ["0077", "a b", "in", str(tmp_path)]
    assert ran.seconds > 0
    assert ran.cpu_seconds >= 0


def test_a_command_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"ended with 3: broken"):
        run_timed(["sh", "-c", "echo broken >&2; exit 3"], folder=tmp_path)
    with pytest.raises(PipelineError, match="ended with 127"):
        run_timed(["no-such-program-here"], folder=tmp_path)
    with pytest.raises(ServiceError, match="did not run"):
        run_timed([sys.executable, "-c", "input()"], folder=tmp_path / "absent")


def test_the_machine_is_described_without_its_name() -> None:
    machine = read_machine()
    assert machine.cores >= 1
    assert machine.memory_bytes > 1 << 28
    assert read_load() >= 0


def test_an_unknown_group_is_a_wrong_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "resets", "--release", str(ROOT / "release.yaml")], {}) == 64
    assert "no such group of figures: 'resets'" in capsys.readouterr().err
