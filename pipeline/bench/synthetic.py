"""Layers of ordinary files, the same on every machine: 529 MB, 23,918 files, five layers, a third of it when packed.

Half of the bytes are text, words in indented lines as source code and records are; the others are like machine code,
common sequences with rare ones between. Most files are small, and half of the bytes are in the largest twentieth. No
file is a git object or an archive.
"""

from __future__ import annotations

import io
import random
import tarfile
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

from pipeline.derive.layer import GzipSink
from pipeline.files import write_atomic
from pipeline.model.record import canonical_json

FILES, CONTENT_BYTES, LAYERS = 23_918, 510_000_000, 5
"""With headers and padding the tar bytes are those of an ordinary published image."""
LARGE_BYTES = 24_000_000
MEDIA_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"
_VERSION = "3"
_POOL_BYTES = 4 << 20
_WORDS, _CODES = 6000, 3000
_LINE_FEED_RANK = 8
_LEVEL = 4
_EPOCH_S = 1_700_000_000


def ordinary_layers(folder: Path, files: int = FILES, content_bytes: int = CONTENT_BYTES) -> list[Path]:
    """The layers' blobs in `folder`, made there when they are not yet; about 20 s the first time."""
    paths = [folder / f"ordinary-{number}.tar.gz" for number in range(LAYERS)]
    stamp, wanted = folder / "ordinary.json", canonical_json([_VERSION, files, content_bytes])
    if stamp.is_file() and stamp.read_bytes() == wanted and all(path.is_file() for path in paths):
        return paths
    chance = random.Random(20261012)  # noqa: S311 - the same files every time is what is wanted
    pools = (_text_pool(chance), _code_pool(chance))
    sizes = make_sizes(chance, files, content_bytes)
    for number, path in enumerate(paths):
        write_atomic(path, _layer(chance, pools, sizes[number::LAYERS], number))
    write_atomic(stamp, wanted)
    return paths


def make_sizes(chance: random.Random, files: int, content_bytes: int) -> list[int]:
    """Sizes of all files, close to `content_bytes` in all; one in each 10,000 files is LARGE_BYTES large."""
    drawn = [chance.lognormvariate(8.3, 1.75) for _ in range(files)]
    large = files // 10_000
    scale = (content_bytes - large * LARGE_BYTES) / sum(drawn)
    return [LARGE_BYTES] * large + [int(size * scale) for size in drawn[large:]]


def _layer(chance: random.Random, pools: tuple[bytes, bytes], sizes: list[int], number: int) -> bytes:
    out = io.BytesIO()
    sink = GzipSink(out, _LEVEL)
    done = {True: 0, False: 0}  # bytes of code and of text so far: half of each, and the largest file is code
    with tarfile.open(fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT, bufsize=1 << 20) as tar:  # type: ignore[call-overload]
        for index, size in enumerate(sizes):
            is_code = done[True] <= done[False]
            done[is_code] += size
            suffix = "so" if is_code else "py"
            info = tarfile.TarInfo(f"usr/lib/layer{number}/package{index // 40}/module{index}.{suffix}")
            info.size, info.mtime = size, _EPOCH_S
            tar.addfile(info, io.BytesIO(b"".join(_slices(chance, pools[is_code], size))))
    sink.close()
    return out.getvalue()


def _slices(chance: random.Random, pool: bytes, size: int) -> Iterator[bytes]:
    while size > 0:
        start = chance.randrange(len(pool) - 1)
        piece = pool[start : start + min(size, 1 << 15)]
        size -= len(piece)
        yield piece


def _text_pool(chance: random.Random) -> bytes:
    words = [_word(chance) for _ in range(_WORDS)]
    often = list(accumulate(1 / (rank + 4) for rank in range(_WORDS)))
    lines, done = [], 0
    while done < _POOL_BYTES:
        line = (
            " " * (4 * chance.randrange(4))
            + " ".join(chance.choices(words, cum_weights=often, k=chance.randrange(1, 10)))
            + "\n"
        )
        lines.append(line)
        done += len(line)
    return "".join(lines).encode()


def _word(chance: random.Random) -> str:
    return "".join(chance.choices("etaoinshrdlucmfwypvbgkjqxz_(.,)=", k=chance.randrange(2, 11)))


def _code_pool(chance: random.Random) -> bytes:
    # the byte of a line feed is rare in machine code: a shared library has one in about 280 bytes
    codes = [chance.randbytes(chance.randrange(2, 9)).replace(b"\n", b"\0") for _ in range(_CODES)]
    codes[_LINE_FEED_RANK] = b"\x48\n"
    weights = [1 / (rank + 1) ** 1.3 for rank in range(_CODES)]
    return b"".join(chance.choices(codes, weights, k=_POOL_BYTES // 5))
