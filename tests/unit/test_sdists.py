"""Source archives: what becomes part of a repository, and what is refused."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from pipeline.embedded import archives
from pipeline.embedded.archives import read_archive
from pipeline.embedded.filecache import FileCache
from pipeline.embedded.locks import LockedSdist
from pipeline.embedded.sdists import make_material, read_sdist
from pipeline.errors import HostileInputError

FILES = {"p-1/setup.py": b"raise SystemExit('executed')", "p-1/src/p/__init__.py": b"", "p-1/run.sh": b"#!/bin/sh"}


def tarred(files: dict[str, bytes], further: tarfile.TarInfo | None = None) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o755 if name.endswith(".sh") else 0o644
            tar.addfile(info, io.BytesIO(data))
        if further is not None:
            tar.addfile(further)
    return out.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            item = zipfile.ZipInfo(name)
            item.external_attr = (0o100755 if name.endswith(".sh") else 0o100644) << 16
            archive.writestr(item, data)
    return out.getvalue()


def read(data: bytes, folder: Path) -> dict[str, archives.ArchivedFile]:
    sha256 = hashlib.sha256(data).hexdigest()
    (folder / "sdist").write_bytes(data)
    FileCache(folder / "cache").add(folder / "sdist", sha256)
    return read_sdist(LockedSdist("1", sha256, "p-1.tar.gz"), FileCache(folder / "cache"))


@pytest.mark.parametrize("pack", [tarred, zipped])
def test_files_lose_their_top_folder_and_keep_their_mode(pack: object, tmp_path: Path) -> None:
    assert callable(pack)
    files = read(pack(FILES), tmp_path)
    assert {path: file.mode for path, file in files.items()} == {
        "setup.py": 0o644,
        "src/p/__init__.py": 0o644,
        "run.sh": 0o755,
    }


def test_what_sdist_and_machines_add_is_left_out(tmp_path: Path) -> None:
    added = ["PKG-INFO", "src/p.egg-info/SOURCES.txt", "src/p/__pycache__/a.cpython-311.pyc", "b.pyc", ".DS_Store"]
    files = read(tarred({**FILES, **{f"p-1/{name}": b"x" for name in added}}), tmp_path)
    assert len(files) == len(FILES)


@pytest.mark.parametrize("name", ["p-1/.git/config", "p-1/sub/.GIT/hooks/post-checkout"])
def test_a_git_folder_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(HostileInputError, match="git folder"):
        read(tarred({**FILES, name: b"[core]"}), tmp_path)


def test_an_empty_sdist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HostileInputError, match="without files"):
        read(tarred({"p-1/PKG-INFO": b""}), tmp_path)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_are_refused(kind: bytes) -> None:
    info = tarfile.TarInfo("p-1/link")
    info.type, info.linkname = kind, "../../../etc/passwd"
    with pytest.raises(HostileInputError, match="not a regular file"):
        read_archive(tarred(FILES, info), "p")


@pytest.mark.parametrize("name", ["../x", "/etc/x", "p-1/../../x", "p-1/./x", "p-1//x", "p-1\\x"])
@pytest.mark.parametrize("pack", [tarred, zipped])
def test_unsafe_names_are_refused(pack: object, name: str) -> None:
    assert callable(pack)
    with pytest.raises(HostileInputError, match="unsafe name"):
        read_archive(pack({name: b""}), "p")


def test_a_gzip_bomb_is_refused_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_TOTAL_BYTES", 1 << 20)
    with pytest.raises(HostileInputError, match="unpacks to over"):
        read_archive(gzip.compress(bytes(8 << 20)), "p")


def test_limits_on_count_and_size_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_FILES", 2)
    with pytest.raises(HostileInputError, match="too many files"):
        read_archive(tarred(FILES), "p")
    monkeypatch.setattr(archives, "MAX_FILE_BYTES", 4)
    with pytest.raises(HostileInputError, match="a file of"):
        read_archive(tarred(FILES), "p")


@pytest.mark.parametrize(
    "data", [b"", b"PK", b"\x1f\x8b", b"plain text", tarred(FILES)[:-30], gzip.compress(b"no tar" * 99)]
)
def test_damaged_archives_are_refused(data: bytes) -> None:
    with pytest.raises(HostileInputError):
        read_archive(data, "p")


def test_material_names_the_file() -> None:
    material = make_material("My.Project", LockedSdist("1.0", "ab" * 32, "My.Project-1.0.zip"))
    assert material.uri == "pkg:pypi/my-project@1.0?file_name=My.Project-1.0.zip"
    assert (material.kind, material.file_name) == ("sdist", "My.Project-1.0.zip")
