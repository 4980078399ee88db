"""Rewriting a layer: identity without drops, the rest byte for byte, hard links, whiteouts, damage."""

from __future__ import annotations

import gzip
import io
import subprocess
import tarfile
from pathlib import Path

import pytest
import zstandard

from pipeline.derive.rewrite import Rewritten, drop_paths, rewrite_layer
from pipeline.errors import HostileInputError
from pipeline.scan import tar
from pipeline.scan.limits import Limits
from pipeline.scan.stream import Reader
from tests.fakes.leaks import Item, make_tar

LINK = tarfile.LNKTYPE


def rewrite(blob: bytes, *paths: bytes) -> tuple[Rewritten, bytes]:
    out = io.BytesIO()
    done = rewrite_layer(io.BytesIO(blob), drop_paths(frozenset(paths)), out)
    assert done is not None
    return done, gzip.decompress(out.getvalue())


def headers(plain: bytes) -> list[bytes]:
    return [member.header for member in tar.walk(Reader(iter([plain])), Limits())]


def names(plain: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(plain)) as archive:
        return archive.getnames()


def test_nothing_to_drop_writes_nothing() -> None:
    out = io.BytesIO()
    assert rewrite_layer(io.BytesIO(make_tar([Item("a", b"1")])), drop_paths(frozenset({b"b"})), out) is None
    assert out.getvalue() == b""


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
def test_any_compression_is_read(pack: object) -> None:
    plain = make_tar([Item("a", b"1"), Item("b", b"2")])
    done, left = rewrite(pack(plain), b"a")  # type: ignore[operator]
    assert names(left) == ["b"]
    assert done.dropped == ("a",)
    assert done.facts.entries == 1


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_what_stays_keeps_its_header_bytes_and_order(form: int) -> None:
    long = "d/" * 40 + "x"
    items = [
        Item("z", b"1" * 600, uid=7),
        Item("gone", b"x"),
        Item(long, b"2", mode=0o4755),
        Item("a", kind=b"2", target="z"),
    ]
    plain = make_tar(items, form)
    _, left = rewrite(plain, b"gone")
    kept = [header for header in headers(plain) if b"gone" not in header]
    assert headers(left) == kept
    assert names(left) == ["z", long.rstrip("/"), "a"]


def test_extended_attributes_sparse_files_and_devices_stay(tmp_path: Path) -> None:
    sparse = tmp_path / "sparse"
    with sparse.open("wb") as file:
        file.truncate(10 << 20)
        file.seek(5 << 20)
        file.write(b"island")
    (tmp_path / "gone").write_bytes(b"x")
    for form in ("gnu", "pax"):
        plain = subprocess.run(
            ["tar", "-C", tmp_path, f"--format={form}", "--sparse", "-cf", "-", "gone", "sparse"],
            capture_output=True, check=True,
        ).stdout  # fmt: skip
        assert len(plain) < 1 << 20
        _, left = rewrite(plain, b"gone")
        with tarfile.open(fileobj=io.BytesIO(left)) as archive:
            assert archive.getnames() == ["sparse"]
            content = archive.extractfile("sparse")
            assert content is not None
            assert content.read() == sparse.read_bytes()
    info = tarfile.TarInfo("f")
    info.pax_headers = {"SCHILY.xattr.security.capability": "\x01\x00"}
    device = tarfile.TarInfo("null")
    device.type, device.devmajor, device.devminor = tarfile.CHRTYPE, 1, 3
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for one in (tarfile.TarInfo("gone"), info, device):
            archive.addfile(one)
    _, left = rewrite(out.getvalue(), b"gone")
    assert headers(left) == headers(out.getvalue())[1:]


def test_a_dropped_folder_takes_everything_below() -> None:
    items = [Item("d", kind=b"5"), Item("d/e/f", b"1"), Item("dd", b"2"), Item("d/.wh.x")]
    _, left = rewrite(make_tar(items), b"d")
    assert names(left) == ["dd"]


def test_a_kept_hard_link_becomes_the_file_and_the_next_one_follows_it() -> None:
    items = [
        Item("d/file", b"content" * 100, mode=0o640, uid=5),
        Item("one", kind=LINK, target="d/file"),
        Item("two", kind=LINK, target="./d/file"),
    ]
    _, left = rewrite(make_tar(items), b"d")
    with tarfile.open(fileobj=io.BytesIO(left)) as archive:
        one, two = archive.getmembers()
        content = archive.extractfile(one)
        assert content is not None
        assert content.read() == b"content" * 100
        assert (one.mode, one.uid, one.mtime) == (0o640, 5, 1_600_000_000)
        assert (two.type, two.linkname) == (LINK, "one")


def test_a_dropped_link_leaves_the_file() -> None:
    _, left = rewrite(make_tar([Item("file", b"1"), Item("link", kind=LINK, target="file")]), b"link")
    assert names(left) == ["file"]


def test_a_global_header_outlives_the_entry_that_it_stands_before() -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"comment": "for all"}) as archive:
        for name in ("gone", "kept"):
            archive.addfile(tarfile.TarInfo(name))
    _, left = rewrite(out.getvalue(), b"gone")
    with tarfile.open(fileobj=io.BytesIO(left)) as archive:
        assert archive.getnames() == ["kept"]
        assert archive.pax_headers == {"comment": "for all"}


def test_the_result_is_the_same_each_time_and_whole() -> None:
    plain = make_tar([Item("a", b"1"), Item("b", b"2" * 5000)])
    first, second = rewrite(plain, b"a"), rewrite(gzip.compress(plain), b"a")
    assert first == second
    assert len(first[1]) % 10240 == 0
    assert first[0].facts.unpacked_bytes == len(first[1])


@pytest.mark.parametrize("cut", [100, 700, 1600])
def test_a_truncated_layer_is_an_error(cut: int) -> None:
    plain = make_tar([Item("a", b"1"), Item("b", b"2" * 1000)])
    with pytest.raises(HostileInputError, match="truncated"):
        rewrite_layer(io.BytesIO(plain[:cut]), drop_paths(frozenset({b"a"})), io.BytesIO())


def test_a_path_that_leaves_the_root_is_an_error() -> None:
    with pytest.raises(HostileInputError, match="leaves the root"):
        rewrite_layer(io.BytesIO(make_tar([Item("a/../../b", b"1")])), drop_paths(frozenset()), io.BytesIO())
