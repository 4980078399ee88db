"""The image layout and the files under it: complete or absent, never half."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.errors import HostileInputError, IntegrityError, LockedError, StageError, StorageError
from pipeline.files import Lock, make_private_folder, read_bytes_limited, remove_partials, storage_errors, write_atomic
from pipeline.layout import Layout
from pipeline.model.digest import digest_of
from pipeline.model.oci import OCI_LAYER_GZIP, OCI_MANIFEST, Descriptor, Manifest

DATA = b"layer bytes"


def descriptor_of(data: bytes, size: int | None = None) -> Descriptor:
    return Descriptor(mediaType=OCI_LAYER_GZIP, digest=digest_of(data), size=len(data) if size is None else size)


def files_under(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_blob_is_read_back_as_written(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    assert not layout.has(digest_of(DATA))
    layout.write(iter([DATA[:4], DATA[4:]]), descriptor_of(DATA))
    assert layout.has(digest_of(DATA))
    with layout.open(digest_of(DATA)) as blob:
        assert blob.read() == DATA


@pytest.mark.parametrize(
    ("sent", "expected"),
    [(b"other bytes", descriptor_of(DATA)), (DATA[:-1], descriptor_of(DATA)), (DATA + b"!", descriptor_of(DATA))],
    ids=["other bytes", "truncated", "too long"],
)
def test_wrong_bytes_leave_nothing(tmp_path: Path, sent: bytes, expected: Descriptor) -> None:
    with pytest.raises(IntegrityError):
        Layout(tmp_path).write(iter([sent]), expected)
    assert files_under(tmp_path) == []


def test_a_source_that_breaks_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield DATA[:4]
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        Layout(tmp_path).write(broken(), descriptor_of(DATA))
    assert files_under(tmp_path) == []


def test_an_absent_blob_and_an_escaping_digest_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StageError, match="is not here"):
        Layout(tmp_path).open(digest_of(b"absent"))
    with pytest.raises(IntegrityError, match="not a sha256 digest"):
        Layout(tmp_path).has("sha256:../../../etc/passwd")


def test_a_layout_is_complete_once_its_index_is_written(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    manifest = Manifest(b'{"schemaVersion":2}', OCI_MANIFEST)
    with pytest.raises(StageError, match="not a complete image layout"):
        layout.load_index()
    layout.write_bytes(manifest.raw)
    layout.write_index([manifest.descriptor])
    (named,) = layout.load_index().manifests
    assert layout.load_manifest(named).raw == manifest.raw
    layout.path(manifest.digest).write_bytes(b'{"schemaVersion":3}')
    with pytest.raises(IntegrityError, match="the stored manifest is"):
        layout.load_manifest(named)


def test_a_full_disk_is_a_storage_error_and_leaves_nothing(tmp_path: Path) -> None:
    def full() -> Iterator[bytes]:
        yield DATA[:4]
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(StorageError, match="No space left on device") as caught:
        Layout(tmp_path).write(full(), descriptor_of(DATA))
    assert "free space" in caught.value.remedy
    assert files_under(tmp_path) == []
    with pytest.raises(PermissionError), storage_errors(tmp_path):
        raise PermissionError(errno.EACCES, "not about the disk")


def test_a_really_full_disk_is_a_storage_error() -> None:
    with (
        pytest.raises(StorageError),
        storage_errors(Path("/dev/full")),
        Path("/dev/full").open("wb", buffering=0) as full,
    ):
        full.write(b"x")


def test_write_atomic_replaces_whole_and_sets_the_mode(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "key"
    write_atomic(path, b"old", 0o600)
    write_atomic(path, b"new", 0o600)
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert files_under(tmp_path) == ["deep/key"]


def test_a_private_folder_is_private_under_any_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        folder = make_private_folder(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(folder.parent.stat().st_mode) == 0o700


def test_partials_of_a_killed_writer_are_removed(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from pipeline.files import write_atomic_chunks\n"
        "write_atomic_chunks(Path(sys.argv[1]), (os.kill(os.getpid(), 9) for _ in (1,)))"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "blob")], check=False)
    assert len(files_under(tmp_path)) == 1
    assert not (tmp_path / "blob").exists()
    assert remove_partials(tmp_path) == 1
    assert files_under(tmp_path) == []


def test_reading_is_bounded_and_only_of_regular_files(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    os.mkfifo(tmp_path / "fifo")
    assert read_bytes_limited(tmp_path / "file", 5) == b"12345"
    with pytest.raises(HostileInputError, match="limit of 4"):
        read_bytes_limited(tmp_path / "file", 4)
    with pytest.raises(HostileInputError, match="not a regular file"):
        read_bytes_limited(tmp_path / "fifo", 4)


def test_a_lock_names_its_holder_and_passes_on(tmp_path: Path) -> None:
    with Lock(tmp_path / "lock", "publish"), pytest.raises(LockedError) as caught, Lock(tmp_path / "lock", "build"):
        pass
    assert f"`publish`, process {os.getpid()} on " in caught.value.where
    assert ", since 20" in caught.value.where
    with Lock(tmp_path / "lock", "build"):
        pass


def test_a_lock_ends_with_its_process_and_is_not_inherited(tmp_path: Path) -> None:
    code = (
        "import os, subprocess, sys; from pathlib import Path; from pipeline.files import Lock\n"
        "with Lock(Path(sys.argv[1]), 'build'):\n"
        "    child = subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL)\n"
        "    print(child.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path / "lock")], stdout=subprocess.PIPE, check=False)
    try:
        with Lock(tmp_path / "lock", "verify"):
            pass
    finally:
        os.kill(int(killed.stdout), 9)
