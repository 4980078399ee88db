"""The compressor's bytes depend on the input alone: a golden digest, and the same program on emulated processors."""

from __future__ import annotations

import gzip
import hashlib
import io
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from pipeline.derive import layer
from pipeline.derive.layer import GzipSink

GOLDEN_PLAIN = "d74677e26f18de59d4879817e01fcc79d525d70b99a1cb7f217d162b504365d3"
GOLDEN_PACKED = "1e91734d41a3c4a5e4af96588c106a625308a4e29dc56f89bc53fc64da816434"
GENERATED_BYTES = 3 << 20

# One old processor (2006: SSSE3, no AVX, no PCLMUL, no BMI) and all that the emulator can do (AVX2, PCLMUL, BMI).
PROCESSORS = ("Conroe", "max")

PROGRAM = """
import hashlib, sys
sys.path[:] = {path!r}
import deflate
from tests_input import make_input
print(hashlib.sha256(bytes(deflate.gzip_compress(make_input({size}), {level}))).hexdigest())
"""

INPUT = '''
import hashlib


def make_input(size):
    """Bytes of a fixed rule: words, numbers and noise, so literals, short and far matches all occur."""
    words = [hashlib.sha256(b"word %d" % n).hexdigest()[: 3 + n % 9].encode() for n in range(400)]
    out = bytearray()
    number = 0
    while len(out) < size:
        block = hashlib.sha256(b"block %d" % number).digest()
        out += b" ".join(words[block[i] + (block[i + 1] & 127)] for i in range(0, 30, 2))
        if block[31] < 64:
            out += block * 3 + bytes(block[30])
        number += 1
    return bytes(out[:size])
'''


def make_input(size: int) -> bytes:
    namespace: dict[str, object] = {}
    exec(INPUT, namespace)
    return namespace["make_input"](size)  # type: ignore[operator]


def pack(data: bytes) -> bytes:
    out = io.BytesIO()
    sink = GzipSink(out)
    sink.write(data)
    sink.close()
    return out.getvalue()


def test_golden_digest() -> None:
    plain = make_input(GENERATED_BYTES)
    assert hashlib.sha256(plain).hexdigest() == GOLDEN_PLAIN
    assert hashlib.sha256(pack(plain)).hexdigest() == GOLDEN_PACKED


@pytest.mark.parametrize("processor", PROCESSORS)
def test_processor_does_not_matter(processor: str, tmp_path: Path) -> None:
    emulator = shutil.which("qemu-x86_64")
    assert emulator, "qemu-x86_64 is not installed: apt-get install qemu-user"
    (tmp_path / "tests_input.py").write_text(INPUT)
    program = PROGRAM.format(path=[str(tmp_path), *sys.path], size=GENERATED_BYTES, level=layer.LEVEL)
    command = [emulator, "-cpu", processor, sys.executable, "-I", "-S", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, GOLDEN_PACKED), done.stderr[-500:]


def test_cut_into_writes_does_not_matter() -> None:
    plain = make_input(300_000)
    out = io.BytesIO()
    sink = GzipSink(out)
    for start in range(0, len(plain), 7_919):
        sink.write(plain[start : start + 7_919])
    sink.close()
    assert out.getvalue() == pack(plain)


def test_members_are_one_stream_to_gzip_and_zlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer, "MEMBER_BYTES", 50_000)
    plain = make_input(175_001)
    packed = pack(plain)
    assert gzip.decompress(packed) == plain
    assert subprocess.run(["gzip", "-dc"], input=packed, capture_output=True, check=True).stdout == plain
    members, rest, out = 0, packed, b""
    while rest:
        inflater = zlib.decompressobj(wbits=31)
        out += inflater.decompress(rest)
        assert inflater.eof
        rest, members = inflater.unused_data, members + 1
    assert (out, members) == (plain, 4)


def test_header_has_no_name_and_no_time() -> None:
    packed = pack(b"content")
    assert packed[:4] == b"\x1f\x8b\x08\x00"
    assert packed[4:8] == b"\0\0\0\0"


def test_empty_stream_is_one_empty_member() -> None:
    assert gzip.decompress(pack(b"")) == b""


def test_facts_are_of_what_was_written() -> None:
    plain = make_input(100_000)
    out = io.BytesIO()
    sink = GzipSink(out)
    sink.write(plain)
    sink.close()
    facts = sink.facts(entries=3)
    assert facts.digest == "sha256:" + hashlib.sha256(out.getvalue()).hexdigest()
    assert facts.diff_id == "sha256:" + hashlib.sha256(plain).hexdigest()
    assert (facts.size, facts.unpacked_bytes, facts.entries) == (len(out.getvalue()), 100_000, 3)
