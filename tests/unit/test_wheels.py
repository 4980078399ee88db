"""Wheels into layer entries: what is installed where, and every way in which a wheel can lie."""

from __future__ import annotations

import base64
import hashlib
import io
import stat
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from pipeline.derive.layer import Entry
from pipeline.embedded import archives
from pipeline.embedded.filecache import FileCache
from pipeline.embedded.locks import LockedWheel
from pipeline.embedded.wheels import Destination, make_entries
from pipeline.errors import HostileInputError, IntegrityError

INFO = "pkg-1.0.dist-info"
METADATA = b"Metadata-Version: 2.1\nName: Pkg\nVersion: 1.0\n\nWords\n"
FILES: dict[str, bytes] = {
    "pkg/__init__.py": b"x = 1\n",
    "pkg/native.so": b"\x7fELF",
    "pkg/native.pyx": b"cdef",
    "pkg/stub.pyi": b"x: int",
    "pkg/tests/test_it.py": b"assert 1",
    "pkg/testing.py": b"stays = 1",
    "pkg-1.0.data/scripts/tool": b"#!python\nprint(1)\n",
    "pkg-1.0.data/purelib/pure.py": b"p = 1",
    "pkg-1.0.data/data/share/man/x.1": b"man",
    "pkg-1.0.data/headers/x.h": b"h",
    f"{INFO}/METADATA": METADATA,
    f"{INFO}/WHEEL": b"Wheel-Version: 1.0\n",
    f"{INFO}/entry_points.txt": b"[console_scripts]\npkg = pkg.main:App.run [extra]\n",
}
PLACE = Destination("lib", "bin")


def record_of(files: Mapping[str, bytes]) -> bytes:
    rows = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(data)}\n")
    return "".join([*rows, f"{INFO}/RECORD,,\n"]).encode()


def zipped(files: Mapping[str, bytes], modes: Mapping[str, int] | None = None) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            item = zipfile.ZipInfo(name)
            item.compress_type = zipfile.ZIP_DEFLATED
            item.external_attr = (modes or {}).get(name, stat.S_IFREG | 0o644) << 16
            archive.writestr(item, data)
    return out.getvalue()


def wheel_of(files: Mapping[str, bytes], modes: Mapping[str, int] | None = None) -> bytes:
    return zipped({**files, f"{INFO}/RECORD": record_of(files)}, modes)


def unpack(data: bytes, folder: Path, place: Destination = PLACE) -> dict[str, Entry]:
    sha256 = hashlib.sha256(data).hexdigest()
    (folder / "wheel").write_bytes(data)
    cache = FileCache(folder / "cache")
    cache.add(folder / "wheel", sha256)
    entries, _ = make_entries([LockedWheel("pkg", "1.0", sha256)], place, cache)
    return {entry.path: entry for entry in entries}


def test_what_is_installed_where(tmp_path: Path) -> None:
    entries = unpack(wheel_of(FILES, {"pkg/native.so": stat.S_IFREG | 0o755}), tmp_path)
    assert set(entries) == {
        "lib/pkg/__init__.py",
        "lib/pkg/native.so",
        "lib/pkg/testing.py",
        "lib/pure.py",
        "bin/tool",
        "bin/pkg",
        *(f"lib/{INFO}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")),
    }
    assert (entries["lib/pkg/native.so"].mode, entries["lib/pkg/__init__.py"].mode) == (0o755, 0o644)


def test_record_lists_what_is_there_and_nothing_else(tmp_path: Path) -> None:
    record = unpack(wheel_of(FILES), tmp_path)[f"lib/{INFO}/RECORD"].data.decode()
    names = {line.partition(",")[0] for line in record.splitlines()}
    assert "pkg/__init__.py" in names
    assert not names & {"pkg/tests/test_it.py", "pkg/stub.pyi", "pkg-1.0.data/data/share/man/x.1"}


def test_scripts_start_the_images_python(tmp_path: Path) -> None:
    entries = unpack(wheel_of(FILES), tmp_path)
    assert entries["bin/tool"].data == b"#!/usr/bin/python3\nprint(1)\n"
    script = entries["bin/pkg"]
    assert b"from pkg.main import App\n" in script.data
    assert b"sys.exit(App.run())" in script.data
    assert script.mode == 0o755


def test_a_runtime_has_no_scripts(tmp_path: Path) -> None:
    entries = unpack(wheel_of(FILES), tmp_path, Destination("opt/runtime"))
    assert all(path.startswith("opt/runtime/") for path in entries)


def test_material_is_a_package_url(tmp_path: Path) -> None:
    data = wheel_of(FILES)
    sha256 = hashlib.sha256(data).hexdigest()
    (tmp_path / "wheel").write_bytes(data)
    cache = FileCache(tmp_path / "cache")
    cache.add(tmp_path / "wheel", sha256)
    _, (material,) = make_entries([LockedWheel("Pkg", "1.0", sha256)], PLACE, cache)
    assert (material.uri, material.kind, material.digests) == ("pkg:pypi/pkg@1.0", "wheel", {"sha256": sha256})


def changed_content() -> bytes:
    return zipped({**FILES, "pkg/__init__.py": b"x = 2\n", f"{INFO}/RECORD": record_of(FILES)})


def unlisted_file() -> bytes:
    return zipped({**FILES, "pkg/extra.py": b"", f"{INFO}/RECORD": record_of(FILES)})


def missing_file() -> bytes:
    files = {name: data for name, data in FILES.items() if name != "pkg/testing.py"}
    return zipped({**files, f"{INFO}/RECORD": record_of(FILES)})


def weak_hash() -> bytes:
    return zipped({**FILES, f"{INFO}/RECORD": record_of(FILES).replace(b"sha256=", b"md5=")})


def escaping_name() -> bytes:
    return wheel_of({**FILES, "../evil.py": b""})


def absolute_name() -> bytes:
    return wheel_of({**FILES, "/evil.py": b""})


def escaping_scheme() -> bytes:
    return wheel_of({**FILES, "pkg-1.0.data/purelib/../../evil.py": b""})


def link() -> bytes:
    return wheel_of({**FILES, "pkg/link": b"/etc/passwd"}, {"pkg/link": stat.S_IFLNK | 0o777})


def other_project() -> bytes:
    return wheel_of({**FILES, f"{INFO}/METADATA": METADATA.replace(b"Pkg", b"Other")})


def other_version() -> bytes:
    return wheel_of({**FILES, f"{INFO}/METADATA": METADATA.replace(b"1.0\n\n", b"1.1\n\n")})


def two_infos() -> bytes:
    return wheel_of({**FILES, "other-2.dist-info/METADATA": b""})


def no_record() -> bytes:
    return zipped(FILES)


def unsafe_entry_point() -> bytes:
    return wheel_of({**FILES, f"{INFO}/entry_points.txt": b"[console_scripts]\n../x = os:system\n"})


def injected_entry_point() -> bytes:
    return wheel_of({**FILES, f"{INFO}/entry_points.txt": b"[console_scripts]\nx = os;import y:z\n"})


def cut_off() -> bytes:
    return wheel_of(FILES)[:-40]


def not_a_zip() -> bytes:
    return b"PK\x03\x04 and then nothing"


@pytest.mark.parametrize(
    "make",
    [
        changed_content,
        unlisted_file,
        missing_file,
        weak_hash,
        escaping_name,
        absolute_name,
        escaping_scheme,
        link,
        other_project,
        other_version,
        two_infos,
        no_record,
        unsafe_entry_point,
        injected_entry_point,
        cut_off,
        not_a_zip,
    ],
)
def test_a_wheel_that_lies_is_refused(make: Callable[[], bytes], tmp_path: Path) -> None:
    with pytest.raises(HostileInputError):
        unpack(make(), tmp_path)


def test_a_wheel_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_TOTAL_BYTES", 1 << 20)
    bomb = wheel_of({**FILES, "pkg/bomb": bytes(2 << 20)})
    assert len(bomb) < 20_000
    with pytest.raises(HostileInputError, match="too many bytes"):
        unpack(bomb, tmp_path)


def test_a_wheel_of_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_FILES", 5)
    with pytest.raises(HostileInputError, match="too many"):
        unpack(wheel_of(FILES), tmp_path)


def test_the_cache_does_not_take_other_bytes(tmp_path: Path) -> None:
    (tmp_path / "wheel").write_bytes(b"other")
    with pytest.raises(IntegrityError, match="expected"):
        FileCache(tmp_path / "cache").add(tmp_path / "wheel", "ab" * 32)
    assert not FileCache(tmp_path / "cache").has("ab" * 32)


def test_a_damaged_file_of_the_cache_is_removed_and_never_read(tmp_path: Path) -> None:
    cache, sha256 = FileCache(tmp_path), hashlib.sha256(b"good").hexdigest()
    (tmp_path / sha256).write_bytes(b"bad")
    with pytest.raises(IntegrityError):
        cache.read(sha256)
    assert not cache.has(sha256)
    assert not (tmp_path / sha256).exists()
