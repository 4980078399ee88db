"""Hostile bytes end in a result or in HostileInputError, never in anything else, and never run long."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.errors import HostileInputError, StageError
from pipeline.model.oci import OCI_LAYER_TAR
from pipeline.scan import archives, gitfiles, tar
from pipeline.scan.fingerprint import Matcher, make_fingerprint
from pipeline.scan.graph import Graph, Sighting
from pipeline.scan.layer import scan_layer
from pipeline.scan.limits import Budget, Limits
from pipeline.scan.objects import GitObject, make_object
from pipeline.scan.pack import apply_delta, read_pack
from pipeline.scan.rules import Rules
from pipeline.scan.stream import Reader, inflate
from tests.fakes.leaks import Item, make_tar
from tests.fakes.packs import make_pack, with_trailer

QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
PACK = make_pack([(3, b"one blob" * 40), (2, b"100644 a\0" + bytes(20)), (1, b"tree " + b"0" * 40 + b"\n\nx")])
SMALL = Limits(memory_bytes=1 << 16, archive_bytes=1 << 22, archive_members=1000)


def _tolerates(call: Callable[[], object]) -> None:
    with contextlib.suppress(HostileInputError):
        call()


def _damage(data: bytes) -> st.SearchStrategy[bytes]:
    """The data with a few bytes changed, cut, or with bytes put in."""

    def change(edits: list[tuple[int, int, int]]) -> bytes:
        out = bytearray(data)
        for place, value, how in edits:
            at = place % (len(out) + 1)
            if how == 0 and at < len(out):
                out[at] = value
            elif how == 1:
                del out[at:]
            else:
                out.insert(at, value)
        return bytes(out)

    numbers = st.tuples(st.integers(0, 1 << 16), st.integers(0, 255), st.sampled_from([0, 0, 0, 0, 1, 2]))
    return st.lists(numbers, min_size=1, max_size=6).map(change)


TAR = make_tar(
    [Item("a/b", b"text" * 300), Item("d", kind=b"5"), Item("x" * 200, b"1"), Item("l", kind=b"2", target="a")]
)


@QUICK
@given(_damage(TAR))
def test_damaged_tar(data: bytes) -> None:
    def walk() -> None:
        reader = Reader(iter([data]))
        assert all(member.size >= 0 for member in tar.walk(reader, SMALL))
        tar.trailing(reader)

    _tolerates(walk)


@QUICK
@given(_damage(PACK[:-20]))
def test_damaged_pack_with_a_right_checksum(body: bytes) -> None:
    _tolerates(lambda: list(read_pack(with_trailer(body), SMALL)))


@QUICK
@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_delta(base: bytes, delta: bytes) -> None:
    _tolerates(lambda: apply_delta(base, delta, 1 << 20))


INDEX = with_trailer(
    b"DIRC" + (2).to_bytes(4, "big") + (1).to_bytes(4, "big") + bytes(40) + b"i" * 20 + b"\0\1a" + bytes(1)
    + b"TREE" + (25).to_bytes(4, "big") + b"\x001 0\n" + b"t" * 20
)  # fmt: skip


@QUICK
@given(_damage(INDEX[:-20]))
def test_damaged_index(body: bytes) -> None:
    _tolerates(lambda: gitfiles.index_ids(with_trailer(body)))


def test_the_undamaged_seeds_are_read() -> None:
    assert gitfiles.index_ids(INDEX) == [b"i" * 20, b"t" * 20]
    assert len(list(read_pack(PACK, SMALL))) == 3


@QUICK
@given(st.sampled_from([b"\xfftOc", b"MIDX", b"CGPH"]), st.binary(max_size=1500))
def test_any_pack_index(magic: bytes, rest: bytes) -> None:
    data = magic + rest
    _tolerates(lambda: gitfiles.pack_index_ids(data) if magic == b"\xfftOc" else gitfiles.chunked_ids(data))


@QUICK
@given(st.sampled_from(["commit", "tree", "tag"]), st.binary(max_size=300), st.sampled_from(["sha1", "sha256"]))
def test_any_object(kind: str, data: bytes, form: str) -> None:
    _tolerates(lambda: make_object(kind, data, form))  # type: ignore[arg-type]


def _zip() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", b"text" * 100)
        archive.writestr("b/c", b"more")
    return out.getvalue()


SEEDS = [gzip.compress(TAR), bz2.compress(TAR), lzma.compress(TAR), zstandard.compress(TAR), _zip(), TAR]


@pytest.mark.parametrize("seed", SEEDS, ids=["gz", "bz2", "xz", "zst", "zip", "tar"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_damaged_archives(seed: bytes, data: st.DataObject) -> None:
    damaged = data.draw(_damage(seed))
    kind = archives.kind_of(damaged)
    if kind is not None:
        _tolerates(lambda: [len(inner.data) for inner in archives.members(kind, damaged, Budget(SMALL))])


@QUICK
@given(st.binary(max_size=3000))
def test_any_file_content(content: bytes) -> None:
    layer = make_tar([Item("any.git/HEAD", content), Item("x.patch", content), Item("f", b"\x78\x9c" + content)])
    scan = scan_layer(io.BytesIO(layer), OCI_LAYER_TAR, Rules(), SMALL)
    assert scan.entries == 3


@QUICK
@given(st.sampled_from([*SEEDS, PACK, INDEX]), st.data())
def test_any_damaged_known_file(seed: bytes, data: st.DataObject) -> None:
    layer = make_tar([Item("r/.git/index", data.draw(_damage(seed))), Item("after", b"x")])
    assert scan_layer(io.BytesIO(layer), OCI_LAYER_TAR, Rules(), SMALL).entries == 2


@QUICK
@given(_damage(gzip.compress(TAR)))
def test_damaged_layer(data: bytes) -> None:
    _tolerates(lambda: scan_layer(io.BytesIO(data), OCI_LAYER_TAR, Rules(), SMALL))


@QUICK
@given(st.binary(max_size=200), st.integers(1, 50))
def test_chunk_sizes_do_not_matter(data: bytes, size: int) -> None:
    packed = gzip.compress(data) + gzip.compress(data)
    chunks = (packed[at : at + size] for at in range(0, len(packed), size))
    assert b"".join(inflate(chunks)) == data + data


@QUICK
@given(st.binary())
def test_display_is_reversible(path: bytes) -> None:
    shown = tar.display(path)
    assert shown.isprintable()
    assert tar.undisplay(shown) == path


@QUICK
@given(st.lists(st.binary(min_size=20, max_size=20), max_size=8), st.binary(max_size=20))
def test_graph_round_trip(ids: list[bytes], path: bytes) -> None:
    graph = Graph()
    for one in ids:
        graph.add(GitObject(one, "commit", 7, tuple(ids)))
    graph.sightings.append(Sighting(path, b"store", "pack", "holds", ids))
    again = Graph.from_text(graph.to_text(), "test")
    assert again.objects == graph.objects
    assert again.sightings == graph.sightings


@QUICK
@given(st.text(max_size=60))
def test_a_foreign_graph_is_refused(text: str) -> None:
    with pytest.raises(StageError):
        Graph.from_text(text, "test")


@QUICK
@given(st.binary(max_size=4000))
def test_ordinary_bytes_match_no_fixture(data: bytes) -> None:
    text = "\n".join(f"distinctive line number {n} of the fixture" for n in range(60)).encode()
    assert Matcher([make_fingerprint("f", "fixture", text, frozenset())]).match(data) == []


def test_a_zlib_stream_that_is_no_object_is_no_finding() -> None:
    layer = make_tar([Item("z", zlib.compress(b"just data" * 50))])
    assert scan_layer(io.BytesIO(layer), OCI_LAYER_TAR, Rules(), SMALL).leaks == ()
