"""Inputs that once ended a reader of the scan in another way than its own error, or kept it busy, or misled it."""

from __future__ import annotations

import contextlib
import io
import time
import zipfile

import pytest

from pipeline.errors import HostileInputError
from pipeline.scan.archives import members
from pipeline.scan.gitfiles import index_ids
from pipeline.scan.limits import Budget, Limits
from pipeline.scan.pack import read_pack
from pipeline.scan.sparse import expand
from pipeline.scan.stream import Reader
from pipeline.scan.tar import Member
from tests.fakes.packs import back, entry, pack_of, with_trailer


def sparse(pax: dict[bytes, bytes], stored: bytes) -> bytes:
    member = Member(b"s", "file", 0o644, 0, 0, len(stored), b"", b"", pax=pax, sparse=True)
    return b"".join(expand(member, Reader(iter([stored]))))


def test_a_sparse_map_with_half_a_row() -> None:
    with pytest.raises(HostileInputError, match="half"):
        sparse({b"GNU.sparse.map": b"0,1,2", b"GNU.sparse.size": b"9"}, b"x")


def test_a_sparse_map_whose_number_has_no_end() -> None:
    pax = {b"GNU.sparse.major": b"1", b"GNU.sparse.minor": b"0", b"GNU.sparse.realsize": b"9"}
    with pytest.raises(HostileInputError, match="not of numbers"):
        sparse(pax, b"1" * 19 + b"x" * 493)


def zipped(*names: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr("?" + name, f"content of {name}")
    return out.getvalue()


def test_a_zip_member_without_a_name() -> None:
    data = zipped("").replace(b"?", b"\0")
    assert [(inner.name, inner.data) for inner in members("zip", data, Budget(Limits()))] == [(b"", b"content of ")]


def test_a_zip_folder_with_content_is_not_passed_over() -> None:
    data = zipped("d/")
    assert [inner.data for inner in members("zip", data, Budget(Limits()))] == [b"content of d/"]


def test_a_zip_member_at_an_offset_that_no_file_has() -> None:
    data = zipped("a")
    directory, end = data.index(b"PK\1\2"), data.index(b"PK\5\6")
    wide = (1).to_bytes(2, "little") + (8).to_bytes(2, "little") + b"\xff" * 8  # zip64: the offset alone
    row = bytearray(data[directory:end] + wide)
    row[42:46], row[30:32] = b"\xff" * 4, len(wide).to_bytes(2, "little")
    tail = bytearray(data[end:])
    tail[12:16] = len(row).to_bytes(4, "little")
    with pytest.raises(HostileInputError, match="damaged zip"):
        list(members("zip", data[:directory] + row + tail, Budget(Limits())))


def test_a_zip_member_that_wants_four_gigabytes_of_memory() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a", "content")
    data = bytearray(out.getvalue())
    assert [inner.data for inner in members("zip", bytes(data), Budget(Limits()))] == [b"content"]
    data[36:40] = b"\xff" * 4  # after the local header, its name of one byte, and five bytes of properties
    with pytest.raises(HostileInputError, match="memory"):
        list(members("zip", bytes(data), Budget(Limits())))


def test_deltas_that_make_more_in_all_than_a_pack_may() -> None:
    base = entry(3, b"x" * 100)
    entries = [base]
    for _ in range(10):
        distance = sum(map(len, entries))
        entries.append(entry(6, bytes([100, 100, 0x90, 100]), back(distance)))
    pack = pack_of(entries)
    assert len(list(read_pack(pack, Limits(resolved_bytes=1000)))) == 11
    with pytest.raises(HostileInputError, match="more than 999 bytes"):
        list(read_pack(pack, Limits(resolved_bytes=999)))


def index_with(name: bytes, body: bytes) -> bytes:
    return with_trailer(b"DIRC" + (2).to_bytes(4, "big") + bytes(4) + name + len(body).to_bytes(4, "big") + body)


def test_a_cache_tree_with_a_line_feed_in_a_path() -> None:
    body = b"\x001 1\n" + b"t" * 20 + b"a\nb\x001 0\n" + b"u" * 20
    assert index_ids(index_with(b"TREE", body)) == [b"t" * 20, b"u" * 20]


@pytest.mark.parametrize(
    ("name", "body"),
    [(b"TREE", b"\n" * 2_000_000), (b"TREE", b"\0" * 2_000_000), (b"REUC", b"\x000\x000\x000\0" * 300_000)],
    ids=["line feeds", "zeros", "undo"],
)
def test_large_extensions_take_linear_time(name: bytes, body: bytes) -> None:
    started = time.process_time()
    with contextlib.suppress(HostileInputError):
        assert index_ids(index_with(name, body)) == []
    assert time.process_time() - started < 10


@pytest.mark.parametrize(("name", "what"), [(b"TREE", "cache-tree"), (b"REUC", "resolve-undo")])
def test_a_damaged_extension_is_an_error(name: bytes, what: str) -> None:
    with pytest.raises(HostileInputError, match=what):
        index_ids(index_with(name, b"a\x00100644"))
