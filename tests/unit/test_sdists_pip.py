"""Downloads through pip's own machinery, from an index on disk: nothing of a project is ever executed."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from pipeline.embedded.filecache import FileCache
from pipeline.embedded.locks import LockedSdist, LockedWheel
from pipeline.embedded.pip_source import fetch_sdists, fetch_wheels
from pipeline.errors import ServiceError


def sdist(folder: Path, version: str) -> tuple[str, bytes]:
    """An sdist whose build would leave a mark."""
    mark = f"open({str(folder / 'executed')!r}, 'w').close()\n".encode()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, data in (("setup.py", mark), ("PKG-INFO", f"Name: hostile\nVersion: {version}\n".encode())):
            info = tarfile.TarInfo(f"hostile-{version}/{name}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return f"hostile-{version}.tar.gz", out.getvalue()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """A simple index of one project, which pip's environment names."""
    files = dict(sdist(tmp_path, version) for version in ("1.0", "1.1"))
    project = tmp_path / "simple/hostile"
    project.mkdir(parents=True)
    for name, data in files.items():
        (project / name).write_bytes(data)
    (project / "index.html").write_text("".join(f'<a href="{name}">{name}</a>\n' for name in files))
    (tmp_path / "pip.conf").write_text("")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "simple").as_uri())
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    return files


def locked(name: str, data: bytes) -> LockedSdist:
    return LockedSdist(name.removeprefix("hostile-").removesuffix(".tar.gz"), hashlib.sha256(data).hexdigest(), name)


def test_sdists_are_fetched_and_not_executed(index: dict[str, bytes], tmp_path: Path) -> None:
    cache = FileCache(tmp_path / "cache")
    sdists = [locked(name, data) for name, data in index.items()]
    fetch_sdists("hostile", sdists, cache)
    assert [cache.read(item.sha256) for item in sdists] == list(index.values())
    assert not (tmp_path / "executed").exists()


def test_an_sdist_that_the_index_lacks_is_named(index: dict[str, bytes], tmp_path: Path) -> None:
    missing = LockedSdist("9", "ab" * 32, "hostile-9.tar.gz")
    with pytest.raises(ServiceError, match=r"no hostile-9\.tar\.gz"):
        fetch_sdists("hostile", [missing], FileCache(tmp_path / "cache"))


def test_other_bytes_than_the_locked_ones_are_refused(index: dict[str, bytes], tmp_path: Path) -> None:
    name = next(iter(index))
    wrong = LockedSdist("1.0", "ab" * 32, name)
    with pytest.raises(ServiceError, match="expected abab"):
        fetch_sdists("hostile", [wrong], FileCache(tmp_path / "cache"))
    assert not list((tmp_path / "cache").iterdir())


def test_a_wheel_that_the_index_lacks_ends_in_an_error_with_a_remedy(index: dict[str, bytes], tmp_path: Path) -> None:
    with pytest.raises(ServiceError) as caught:
        fetch_wheels([LockedWheel("hostile", "1.0", "ab" * 32)], "3.11", FileCache(tmp_path / "cache"))
    assert "pip config" in caught.value.remedy
    assert not (tmp_path / "executed").exists()
