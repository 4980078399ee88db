"""No false alarm: repositories of many shapes, and the scan's memory under a large blob."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import tests.fakes.clean_shapes  # noqa: F401  (registers the shapes)
from tests.fakes.clean_shapes import SHAPES
from tests.fakes.leaks import make_image


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_a_clean_shape_has_no_finding(name: str, tmp_path: Path) -> None:
    made = SHAPES[name](tmp_path)
    scan, _ = make_image([made.items]).scan(made.rules)
    assert scan.leaks == ()
    if name != "empty repository":
        assert scan.layers[0].objects_seen == scan.layers[0].objects_allowed > 0


def test_there_are_twenty_shapes() -> None:
    assert len(SHAPES) >= 20


# VmHWM, since ru_maxrss of a child begins with what its parent had when it forked
MEASURE = """
import sys
from pathlib import Path
from pipeline.scan.layer import scan_layer
from pipeline.scan.rules import Rules
with open(sys.argv[1], "rb") as stream:
    scan = scan_layer(stream, "application/vnd.oci.image.layer.v1.tar", Rules())
peak = Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]
print(scan.entries, int(peak) // 1024)
"""


def test_memory_stays_below_300_megabytes_whatever_the_layer(tmp_path: Path) -> None:
    block = os.urandom(1 << 20)
    layer = tmp_path / "layer.tar"
    with tarfile.open(layer, "w") as tar:
        large = tarfile.TarInfo("large.bin")
        large.size = 400 << 20
        tar.addfile(large, _Repeated(block, 400))
        archive = tarfile.TarInfo("inner.tar")
        inner = tarfile.TarInfo("member")
        inner.size = 200 << 20
        archive.size = 512 + inner.size
        tar.addfile(archive, _Repeated(block, 200, inner.tobuf()))
    done = subprocess.run([sys.executable, "-c", MEASURE, layer], capture_output=True, text=True, check=True)
    entries, megabytes = map(int, done.stdout.split())
    assert entries == 2
    assert megabytes < 300


class _Repeated(io.RawIOBase):
    """A block many times over, as a file."""

    def __init__(self, block: bytes, count: int, head: bytes = b"") -> None:
        self._block, self._count, self._left = block, count, head

    def read(self, size: int = -1) -> bytes:
        while len(self._left) < size and self._count:
            self._count -= 1
            self._left += self._block
        data, self._left = self._left[:size], self._left[size:]
        return data
