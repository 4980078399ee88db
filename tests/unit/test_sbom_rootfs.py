"""The merged root: whiteouts and opaque folders as specified, links inside the root, hostile tars refused."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable

import pytest
import zstandard

from pipeline.derive.layer import Entry
from pipeline.errors import HostileInputError, IntegrityError
from pipeline.model.oci import OCI_LAYER_GZIP, OCI_LAYER_TAR, OCI_LAYER_ZSTD
from pipeline.sbom.rootfs import RootLimits, RootView, Want, read_root
from pipeline.sbom.tar import TarLimits
from tests.fakes.images import FakeImage, entry, make_image, make_raw_image, plain_digest


def want_text(path: str) -> Want | None:
    return "content" if path.endswith(".txt") else None


def root_of(image: FakeImage, limits: RootLimits | None = None) -> RootView:
    return read_root(image.store, image.manifest, image.config, want_text, limits)


def texts(*layers: list[Entry]) -> dict[str, tuple[bytes, int]]:
    """Path -> content and layer index, of the merged root."""
    return {path: (file.data, file.layer) for path, file in root_of(make_image(*layers)).files.items()}


def tar_image(
    *members: tarfile.TarInfo, kind: str = OCI_LAYER_TAR, pack: Callable[[bytes], bytes] = bytes
) -> FakeImage:
    """One layer with these members, each file filled with `x`."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(b"x" * member.size))
    return make_raw_image([(pack(out.getvalue()), plain_digest(out.getvalue()), kind)])


def member(name: str, size: int = 0, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = size, kind, target
    return info


def test_a_later_layer_wins_and_is_named() -> None:
    assert texts([entry("a.txt", "old"), entry("b.txt", "b")], [entry("a.txt", "new")]) == {
        "a.txt": (b"new", 1),
        "b.txt": (b"b", 0),
    }


@pytest.mark.parametrize("whiteout", ["d/.wh.a.txt", ".wh.d", "d/.wh..wh..opq", ".wh..wh..opq"])
def test_whiteouts_hide_what_is_below(whiteout: str) -> None:
    assert texts([entry("d/a.txt", "a")], [entry(whiteout)]) == {}


@pytest.mark.parametrize("whiteout", ["d/.wh.a.txt", "d/.wh..wh..opq", ".wh.d"])
def test_whiteouts_spare_their_own_layer(whiteout: str) -> None:
    below = [entry("d/a.txt", "old"), entry("e.txt", "e")]
    assert texts(below, [entry(whiteout), entry("d/a.txt", "new")]) == {"d/a.txt": (b"new", 1), "e.txt": (b"e", 0)}


def test_reserved_whiteout_names_hide_nothing() -> None:
    assert texts([entry("d/a.txt", "a"), entry("plnk.txt")], [entry(".wh..wh.plnk.txt")]).keys() == {
        "d/a.txt",
        "plnk.txt",
    }


def test_a_file_replaces_a_folder_and_a_folder_replaces_a_link() -> None:
    assert texts([entry("d/a.txt", "a")], [entry("d")]) == {}
    root = root_of(make_image([Entry("d", "symlink", target="elsewhere")], [entry("d/a.txt", "a")]))
    assert root.links == {}
    assert root.find("d/a.txt") is not None


def test_links_are_followed_inside_the_root_only() -> None:
    root = root_of(
        make_image(
            [
                entry("real/a.txt", "a"),
                Entry("usr/folder", "symlink", target="../real"),
                Entry("usr/out.txt", "symlink", target="../../../../real/a.txt"),
                Entry("usr/absolute", "symlink", target="/real"),
                Entry("usr/circle", "symlink", target="circle"),
            ]
        )
    )
    for path in ("usr/folder/a.txt", "usr/out.txt", "usr/absolute/a.txt", "real/../real/a.txt"):
        found = root.find(path)
        assert found is not None, path
        assert found.data == b"a"
    assert root.find("usr/circle") is None


def test_a_hard_link_has_the_content_of_its_target() -> None:
    image = tar_image(member("pool/one", 5), member("a.txt", 0, tarfile.LNKTYPE, "pool/one"))
    found = root_of(image).files["a.txt"]
    assert found.data == b"xxxxx"


@pytest.mark.parametrize(
    ("kind", "pack"),
    [
        (OCI_LAYER_TAR, bytes),
        (OCI_LAYER_GZIP, gzip.compress),
        (OCI_LAYER_GZIP, lambda data: gzip.compress(data[:700]) + gzip.compress(data[700:])),
        (OCI_LAYER_ZSTD, zstandard.ZstdCompressor().compress),
    ],
)
def test_every_media_type_and_long_names(kind: str, pack: Callable[[bytes], bytes]) -> None:
    long = "/".join(["folder-with-a-long-name"] * 12) + "/ü.txt"
    assert root_of(tar_image(member(long, 3), kind=kind, pack=pack)).files[long].data == b"xxx"


def test_a_layer_that_is_not_its_diff_id_is_refused() -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.addfile(member("a.txt"))
    image = make_raw_image([(out.getvalue(), plain_digest(b"another"), OCI_LAYER_TAR)])
    with pytest.raises(IntegrityError, match="diff_id"):
        root_of(image)


@pytest.mark.parametrize(
    ("members", "limits", "why"),
    [
        ([member("../a.txt")], RootLimits(), "no image needs"),
        ([member("a/" * 300 + "a.txt")], RootLimits(), "no image needs"),
        ([member("x" * 5000)], RootLimits(), "no image needs"),
        ([member("a.txt", 100)], RootLimits(file_bytes=99), "package metadata"),
        ([member("a.txt", 100), member("b.txt", 100)], RootLimits(kept_bytes=150), "package metadata of 200"),
        ([member("a.txt"), member("b.txt")], RootLimits(kept_entries=1), "more package metadata"),
        ([member("a"), member("b"), member("c")], RootLimits(tar=TarLimits(entries=2)), "tar headers"),
        ([member("a", 4096)], RootLimits(tar=TarLimits(unpacked_bytes=2048)), "unpacks to more"),
        ([member("a" * 200)], RootLimits(tar=TarLimits(header_bytes=100)), "extended tar header"),
    ],
)
def test_limits(members: list[tarfile.TarInfo], limits: RootLimits, why: str) -> None:
    with pytest.raises(HostileInputError, match=why):
        root_of(tar_image(*members), limits)


def test_damage_is_an_error_never_silence() -> None:
    whole = gzip.compress(b"\1" * 512)
    for blob, kind in ((whole, OCI_LAYER_GZIP), (whole[:-9], OCI_LAYER_GZIP), (b"plain", OCI_LAYER_ZSTD), (b"", "odd")):
        with pytest.raises(HostileInputError):
            root_of(make_raw_image([(blob, plain_digest(b""), kind)]))
    ends_early = tar_image(member("a.txt", 2000))
    cut = ends_early.store.blobs[ends_early.manifest.view.layers[0].digest][:1024]
    with pytest.raises(HostileInputError, match="in the middle"):
        root_of(make_raw_image([(cut, plain_digest(cut), OCI_LAYER_TAR)]))
