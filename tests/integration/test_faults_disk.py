"""A disk that is full, wherever it is: exit code 9, a remedy, and nothing half-written; with room again, it goes on."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeline import verbs
from pipeline.__main__ import main
from pipeline.files import PARTIAL_PREFIX
from tests.fakes.release import REPAIR, WORKFLOW, TinyWorld
from tests.fakes.verbs import simulate

VERBS = ("build", "publish", "verify")


@contextmanager
def mounted(folder: Path, megabytes: int) -> Iterator[Path]:
    """A file system of that size, for root."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=700", "none", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path, left_bytes: int) -> Path:
    """Take all room but so many bytes."""
    filler = folder / "filler"
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(free - left_bytes, 4096))
    return filler


def run(tiny: TinyWorld, verb: str) -> int:
    return main([verb, "--release", str(tiny.release_path)], {})


def records(tiny: TinyWorld) -> list[Path]:
    return sorted(tiny.paths.state.rglob("record.json"))


if os.geteuid() == 0:  # without root there is no small file system to fill; the unit tests of `files` cover the rest

    @pytest.mark.parametrize("left_bytes", [0, 16_384, 65_536])
    @pytest.mark.parametrize("verb", VERBS)
    def test_a_full_disk_in_the_middle(
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        verb: str,
        left_bytes: int,
    ) -> None:
        with mounted(tmp_path / "small", 8) as small:
            tiny = TinyWorld(small / "release")
            monkeypatch.setattr(verbs, "World", simulate(tiny))
            for each in VERBS[: VERBS.index(verb)]:
                assert run(tiny, each) == 0
            before = records(tiny)
            filler = fill(small, left_bytes)

            assert run(tiny, verb) == 9

            error = capsys.readouterr().err
            assert f"{verb} failed: cannot write: No space left on device" in error
            assert "remedy: free space" in error
            assert str(small) in error
            assert list(tiny.root.rglob(f"{PARTIAL_PREFIX}*")) == []
            assert records(tiny) == before
            assert not tiny.paths.evidence.exists()
            filler.unlink()
            for each in (*VERBS[VERBS.index(verb) :], "review"):
                assert run(tiny, each) == 0

    def test_a_full_temporary_folder(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        tiny = TinyWorld(tmp_path / "release")
        monkeypatch.setattr(verbs, "World", simulate(tiny))
        with mounted(tmp_path / "spools", 1) as spools:
            filler = fill(spools, 0)
            monkeypatch.setattr(tempfile, "tempdir", str(spools))
            assert run(tiny, "build") == 9
            assert f"where: {spools}" in capsys.readouterr().err
            assert records(tiny) == []
            filler.unlink()
            assert run(tiny, "build") == 0

    def test_a_disk_that_is_read_only(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with mounted(tmp_path / "small", 8) as small:
            tiny = TinyWorld(small / "release")
            monkeypatch.setattr(verbs, "World", simulate(tiny))
            assert run(tiny, "build") == 0
            subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
            assert run(tiny, "publish") == 9
            assert "Read-only file system" in capsys.readouterr().err
            subprocess.run(["mount", "-o", "remount,rw", str(small)], check=True)
            assert run(tiny, "publish") == 0
            assert [
                image for image in (REPAIR, WORKFLOW) if not (tiny.paths.published(image) / "record.json").exists()
            ] == []
