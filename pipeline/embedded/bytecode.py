"""Unchecked-hash bytecode (PEP 552) made by an image's own Python, so start-up compiles and re-validates nothing.

The interpreter comes out of the image's Debian root and is started through that root's own dynamic linker, so the
bytes are the same whatever Python and libc the machine has.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pipeline.derive.layer import Entry
from pipeline.errors import PipelineError

WORKERS = 2
TIMEOUT_S = 300
MAX_SOURCE_BYTES = 8 << 20


@dataclass(frozen=True)
class ImagePython:
    """An unpacked Debian root with a Python in it; `version` like 3.11."""

    root_path: Path
    version: str

    @property
    def tag(self) -> str:
        """As in the names of bytecode files."""
        return "cpython-" + self.version.replace(".", "")

    def command(self, arguments: Sequence[str]) -> list[str]:
        """The argv that runs this Python through its own linker, with nothing of the environment of the caller."""
        root = self.root_path
        libraries = f"{root}/usr/lib/x86_64-linux-gnu"
        isolated = ["/usr/bin/env", "-i", "LC_ALL=C.UTF-8", "TZ=UTC", "PYTHONHASHSEED=0", f"PYTHONHOME={root}/usr"]
        linker = [
            f"{root}/usr/lib64/ld-linux-x86-64.so.2",
            "--library-path",
            libraries,
            f"{root}/usr/bin/python{self.version}",
        ]
        return [*isolated, *linker, "-s", "-S", "-P", "-B", *arguments]


@dataclass(frozen=True)
class Bytecode:
    """Entries of `__pycache__` files, and a note for each source that does not compile."""

    entries: tuple[Entry, ...]
    notes: tuple[str, ...]


def make_bytecode(python: ImagePython, entries: Iterable[Entry]) -> Bytecode:
    """Bytecode beside every `.py` file entry. A source that does not compile is noted and left out, never fatal.

    PipelineError when the interpreter itself cannot run.
    """
    sources = [e for e in entries if e.kind == "file" and e.path.endswith(".py") and len(e.data) <= MAX_SOURCE_BYTES]
    # Big and small files alternate in a sorted list, so every second one is a fair share.
    shares = [sources[worker::WORKERS] for worker in range(WORKERS)]
    with ThreadPoolExecutor(WORKERS) as pool:
        done = list(pool.map(lambda share: _compile(python, share), shares))
    results = [result for share in done for result in share]
    made = (_pyc_entry(source, python.tag, content) for source, status, content in results if status == 0)
    notes = (f"/{source.path}: {content.decode('utf-8', 'replace')}" for source, status, content in results if status)
    return Bytecode(tuple(made), tuple(sorted(notes)))


def _pyc_entry(source: Entry, tag: str, content: bytes) -> Entry:
    folder, _, name = source.path.rpartition("/")
    return Entry(f"{folder}/__pycache__/{name[:-3]}.{tag}.pyc", data=content, uid=source.uid, gid=source.gid)


def _compile(python: ImagePython, sources: list[Entry]) -> list[tuple[Entry, int, bytes]]:
    driver = Path(__file__).with_name("bytecode_driver.py")
    stdin = b"".join(_request(f"/{source.path}".encode(), source.data) for source in sources)
    command = python.command([str(driver)])
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise PipelineError(
            f"the image's Python failed with status {done.returncode}: {done.stderr[-300:].decode('utf-8', 'replace')}",
            where=str(python.root_path),
            remedy="the pipeline runs on x86_64 Linux; remove the cache folder and build again",
        )
    return list(zip(sources, *_answers(done.stdout, len(sources)), strict=True))


def _request(path: bytes, source: bytes) -> bytes:
    return struct.pack(">II", len(path), len(source)) + path + source


def _answers(raw: bytes, count: int) -> tuple[list[int], list[bytes]]:
    statuses, contents, offset = [], [], 0
    for _ in range(count):
        status, length = struct.unpack_from(">BI", raw, offset)
        statuses.append(status)
        contents.append(raw[offset + 5 : offset + 5 + length])
        offset += 5 + length
    return statuses, contents
