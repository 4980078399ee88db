"""Damage, bombs and tricks are findings or clear errors, never silence."""

from __future__ import annotations

import gzip
import io
import random
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from pipeline.derive.rewrite import drop_paths, rewrite_layer
from pipeline.derive.strip import plan_strip
from pipeline.errors import HostileInputError
from pipeline.model.oci import OCI_LAYER_GZIP, OCI_LAYER_TAR
from pipeline.scan.layer import scan_layer
from pipeline.scan.limits import Limits
from pipeline.scan.record import LayerScan
from pipeline.scan.rules import Rules
from tests.fakes.leaks import Image, Item, World, git, make_gzip, make_image, make_tar
from tests.fakes.packs import back, entry, make_pack, pack_of, with_trailer

SMALL = Limits(archive_bytes=64 << 20, ratio_free_bytes=1 << 20, archive_members=100)
REF_DELTA, OFS_DELTA = 7, 6


def scan(*items: Item, limits: Limits = SMALL) -> LayerScan:
    return scan_layer(io.BytesIO(make_tar(items)), OCI_LAYER_TAR, Rules(), limits)


def says(made: LayerScan, path: str, text: str) -> bool:
    return any(leak.path == path and leak.kind == "unreadable" and text in leak.how for leak in made.leaks)


BAD_PACKS = {
    "checksum": (make_pack([(3, b"x" * 99)])[:-1] + b"?", "checksum"),
    "truncated": (make_pack([(3, b"x" * 99)])[:40], "checksum"),
    "fewer than it says": (make_pack([(3, b"x")], count=2), ""),
    "hidden bytes": (make_pack([(3, b"x")], extra=b"hidden"), "belong to no object"),
    "missing base": (pack_of([entry(REF_DELTA, b"\x01\x01\x01x", b"b" * 20)]), "base is not there"),
    "a base before the pack": (pack_of([entry(OFS_DELTA, b"\x01\x01\x01x", b"\x7f")]), "outside its pack"),
    "a base inside nothing": (pack_of([entry(3, b"abc"), entry(OFS_DELTA, b"\x03\x01\x01x", b"\x02")]), ""),
    "wrong size": (pack_of([entry(3, b"abc", size=9)]), "shorter"),
    "longer than it says": (pack_of([entry(3, b"abc" * 9, size=9)]), "longer"),
    "unknown type": (pack_of([entry(5, b"abc")]), "type 5"),
    "damaged tree": (make_pack([(2, b"100644 a\0short")]), "damaged git tree"),
    "damaged commit": (make_pack([(1, b"tree nothing")]), "tree line"),
    "damaged zlib": (with_trailer(make_pack([(3, b"x" * 99)])[:-24] + b"????"), ""),
}


@pytest.mark.parametrize("name", sorted(BAD_PACKS))
def test_a_damaged_pack_is_a_finding(name: str) -> None:
    pack, text = BAD_PACKS[name]
    assert says(scan(Item("r/.git/objects/pack/p.pack", pack)), "r/.git/objects/pack/p.pack", text)


def test_a_damaged_pack_still_gives_the_objects_before_the_damage(tmp_path: Path) -> None:
    world = World(tmp_path)
    pack = git(world.source, "pack-objects", "--revs", "--stdout", "-q", stdin=b"v6\n")
    bad = with_trailer(pack[:8] + (int.from_bytes(pack[8:12], "big") + 1).to_bytes(4, "big") + pack[12:-20])
    made, _ = make_image(world.with_items(Item("p", bad))).scan(world.rules())
    assert [leak.kind for leak in made.leaks if leak.path == "p"] == ["unreadable"]


def test_a_delta_bomb_stops_at_its_stated_size() -> None:
    base = bytes(1 << 20)
    copies = b"\xb0\xff\xff" * 4000  # 65,535 bytes each
    delta = b"\x80\x80\x40" + b"\x80\x80\x40" + copies
    whole = entry(3, base)
    made = scan(Item("p", pack_of([whole, entry(OFS_DELTA, delta, back(len(whole)))])))
    assert says(made, "p", "another result size")


def test_a_truncated_archive_is_a_finding() -> None:
    noise = random.Random(1).randbytes(4000)
    inner = gzip.compress(make_tar([Item("a", noise)]))
    assert says(scan(Item("a.tgz", inner[:2000])), "a.tgz", "truncated")
    assert says(scan(Item("a.tar", make_tar([Item("a", noise)])[:2000])), "a.tar", "truncated")
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("a", noise)
    assert says(scan(Item("a.zip", zipped.getvalue()[:2000])), "a.zip", "damaged zip")


def test_data_after_the_end_of_an_archive_is_a_finding() -> None:
    inner = make_tar([Item("a", b"1")]) + b"hidden" + bytes(506)
    assert says(scan(Item("a.tar", inner)), "a.tar", "after the end")
    layer = make_tar([Item("a", b"1")]) + b"hidden" + bytes(506)
    made = scan_layer(io.BytesIO(layer), OCI_LAYER_TAR, Rules(), SMALL)
    assert says(made, "", "after the end of the layer")


def test_hidden_data_is_gone_after_the_strip(tmp_path: Path) -> None:
    world = World(tmp_path)
    plain = make_tar(world.root_items) + b"hidden" + bytes(506)
    image = Image([make_gzip(plain), make_gzip(make_tar(world.clean_items))])
    made, layers = image.scan(world.rules())
    assert [(leak.path, leak.kind) for leak in made.leaks] == [("", "unreadable")]
    plan = plan_strip(made, layers, {})
    assert plan.layers == {image.scans_digest[0]: frozenset()}
    assert plan_strip(made, layers, {}, frozenset({"future"})).is_empty
    out = io.BytesIO()
    assert rewrite_layer(io.BytesIO(image.blobs[0]), drop_paths(frozenset()), out) is not None
    assert b"hidden" not in gzip.decompress(out.getvalue())
    after, _ = Image([out.getvalue(), image.blobs[1]]).scan(world.rules())
    assert after.leaks == ()


def test_bombs_end_early() -> None:
    gz = gzip.compress(bytes(32 << 20), 9)
    assert says(scan(Item("a.gz", gz)), "a.gz", "times its size")
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", bytes(32 << 20))
    assert says(scan(Item("a.zip", zipped.getvalue())), "a.zip", "times its size")
    nested = make_gzip(b"x")
    for _ in range(6):
        nested = make_tar([Item("n", nested)])
    assert any("nested deeper" in leak.how for leak in scan(Item("n.tar", nested)).leaks)
    many = make_tar([Item(f"{number}") for number in range(200)])
    assert says(scan(Item("m.tar", many)), "m.tar", "members")


def test_a_layer_bomb_is_an_error() -> None:
    blob = gzip.compress(make_tar([Item("zero", bytes(8 << 20))]))
    with pytest.raises(HostileInputError, match="unpacks to more"):
        scan_layer(io.BytesIO(blob), OCI_LAYER_GZIP, Rules(), Limits(layer_bytes=1 << 20))


@pytest.mark.parametrize("cut", [1, 30, 300])
def test_a_truncated_layer_is_an_error(cut: int) -> None:
    noise = random.Random(1).randbytes(900)
    blob = gzip.compress(make_tar([Item("a", noise)]))
    with pytest.raises(HostileInputError, match="truncated"):
        scan_layer(io.BytesIO(blob[:-cut]), OCI_LAYER_GZIP, Rules(), SMALL)


def test_what_is_no_layer_is_refused() -> None:
    with pytest.raises(HostileInputError, match="not a layer"):
        scan_layer(io.BytesIO(b""), "application/json", Rules())
    with pytest.raises(HostileInputError, match="a tar number"):
        scan_layer(io.BytesIO(b"x" * 4096), OCI_LAYER_TAR, Rules())


def test_an_encrypted_zip_is_a_finding() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a", b"secret")
    data = bytearray(out.getvalue())
    data[6] |= 1
    data[data.index(b"PK\1\2") + 8] |= 1
    assert says(scan(Item("a.zip", bytes(data))), "a.zip", "encrypted")


def test_cyclic_links_do_not_matter(tmp_path: Path) -> None:
    world = World(tmp_path)
    cycle = [Item("a", kind=tarfile.SYMTYPE, target="b"), Item("b", kind=tarfile.SYMTYPE, target="a")]
    hard = [Item("h1", kind=tarfile.LNKTYPE, target="h2"), Item("h2", kind=tarfile.LNKTYPE, target="h1")]
    made, _ = make_image(world.with_items(*cycle, *hard)).scan(world.rules())
    assert made.leaks == ()
    made, _ = make_image(world.with_items(*cycle, Item("a/x/pack", b"PACK\0\0\0\2"))).scan(world.rules())
    assert [(leak.path, leak.kind, leak.reach) for leak in made.leaks] == [("a/x/pack", "unreadable", "reachable")]


@pytest.mark.parametrize("form", ["gnu", "pax"])
def test_a_pack_in_a_sparse_file_is_found(form: str, tmp_path: Path) -> None:
    world = World(tmp_path)
    pack = git(world.source, "pack-objects", "--revs", "--stdout", "-q", stdin=b"v6\n")
    body = pack[:-20]
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.write(gzip.compress(pack, mtime=0))
        file.truncate(3 << 20)
        file.seek(2 << 20)
        file.write(body[:1])
    packed = subprocess.run(
        ["tar", "-C", tmp_path, f"--format={form}", "--sparse", "-cf", "-", "sparse"], capture_output=True, check=True
    ).stdout
    made = scan_layer(io.BytesIO(packed), OCI_LAYER_TAR, world.rules())
    assert made.archives == 1  # the gzip data is read as it stands in the whole file
    assert made.leaks
    assert made.leaks[0].path == "sparse"


def test_a_base_commit_that_is_nowhere_is_a_finding(tmp_path: Path) -> None:
    world = World(tmp_path)
    made, _ = make_image(world.with_items()).scan(Rules(base_commits=("0" * 39 + "1",)))
    assert any("declared base commit" in leak.how for leak in made.leaks)
    assert any(leak.kind == "unrelated" for leak in made.leaks)
