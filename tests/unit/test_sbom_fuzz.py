"""Damaged layers and metadata give an SBOM or one of our errors, never a crash and never an invalid document."""

from __future__ import annotations

import gzip
import io
import tarfile

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.derive.layer import make_layer
from pipeline.errors import IntegrityError
from pipeline.model.oci import OCI_LAYER_GZIP, OCI_LAYER_TAR
from pipeline.sbom.document import SbomSubject, make_sbom, want
from pipeline.sbom.rootfs import read_root
from pipeline.sbom.view import check_references, check_schema, load_sbom
from tests.fakes.images import EPOCH_S, entry, make_image, make_raw_image, plain_digest
from tests.fakes.planted import BOTTOM, COPYRIGHT, OS_RELEASE, STATUS

SUBJECT = SbomSubject("fuzzed", "1", "sha256:" + "1" * 64, "Apache-2.0")
EDITS = st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=12)
METADATA = b"Metadata-Version: 2.1\nName: x\nVersion: 1\nRequires-Dist: y (>=1); python_version>'3'\nLicense: MIT\n"
CONDA = b'{"name": "x", "version": "1", "depends": ["y >=1"], "license": "MIT"}'


def small_tar() -> bytes:
    """Long names, links, a global header: something of every kind that the reader knows."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"comment": "x"}) as tar:
        for name, kind in (("a/" * 60 + "METADATA", tarfile.REGTYPE), ("l", tarfile.SYMTYPE), ("h", tarfile.LNKTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, "ü/" * 80, 3 if kind == tarfile.REGTYPE else 0
            tar.addfile(info, io.BytesIO(b"abc"))
    return out.getvalue()


TAR = small_tar()
GZIP = make_layer(BOTTOM, EPOCH_S)[0]


def damaged(data: bytes, edits: list[tuple[int, int]]) -> bytes:
    changed = bytearray(data)
    for at, value in edits:
        changed[at % len(changed)] = value
    return bytes(changed)


def read(blob: bytes, diff_id: str, kind: str) -> None:
    image = make_raw_image([(blob, diff_id, kind)])
    try:
        make_sbom(read_root(image.store, image.manifest, image.config, want), SUBJECT, EPOCH_S)
    except IntegrityError:
        return


@settings(max_examples=150, deadline=None)
@given(EDITS, st.integers(0, len(TAR)))
def test_damaged_tars(edits: list[tuple[int, int]], cut: int) -> None:
    for data in (damaged(TAR, edits), TAR[:cut]):
        read(data, plain_digest(data), OCI_LAYER_TAR)


@settings(max_examples=60, deadline=None)
@given(EDITS)
def test_damaged_compression_is_never_taken_for_the_layer(edits: list[tuple[int, int]]) -> None:
    read(damaged(GZIP, edits), plain_digest(gzip.decompress(GZIP)), OCI_LAYER_GZIP)


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(
        [
            ("var/lib/dpkg/status", STATUS.encode()),
            ("usr/share/doc/bash/copyright", COPYRIGHT.encode()),
            ("etc/os-release", OS_RELEASE.encode()),
            ("x/x-1.dist-info/METADATA", METADATA),
            ("x/x.egg-info/requires.txt", b"y\n[:python_version<'3']\nz\n[e]\nw\n"),
            ("x/x-1.dist-info/direct_url.json", b'{"url": "file:///a", "dir_info": {"editable": true}}'),
            ("x/conda-meta/x.json", CONDA),
        ]
    ),
    EDITS,
)
@example(("var/lib/dpkg/status", b"Package: x\nVersion: 1\nDepends: ((, |a [\n"), [(0, 80)])
@example(("usr/share/doc/bash/copyright", b"Format: x\n\nFiles: *\nLicense: , and or (\n"), [(0, 70)])
def test_damaged_metadata(file: tuple[str, bytes], edits: list[tuple[int, int]]) -> None:
    files = {
        "var/lib/dpkg/status": STATUS.encode(),
        "x/x.egg-info/PKG-INFO": METADATA,
        "x/x-1.dist-info/METADATA": METADATA,
        file[0]: damaged(file[1], edits),
    }
    image = make_image([entry(path, data) for path, data in files.items()])
    try:
        raw = make_sbom(read_root(image.store, image.manifest, image.config, want), SUBJECT, EPOCH_S)
    except IntegrityError:
        return
    assert check_schema(raw) == []
    assert check_references(load_sbom(raw, "fuzzed")) == []
