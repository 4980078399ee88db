"""Work that is measured in a process of its own: its own peak memory, its own processor seconds.

Each takes words of a command line and gives a JSON document; `scan` measures with them.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from pipeline.derive.repository import make_clean_repository
from pipeline.scan.layer import scan_layer
from pipeline.scan.rules import Rules
from pipeline.scan.stream import inflate

_CHUNK_BYTES = 1 << 20


def scan_layers(arguments: Sequence[str]) -> JsonValue:
    """Scan layers, given as `image=target=release file` for the rules, then `path=media type` each.

    Processor seconds count the reading thread too: they are what one core takes.
    """
    rules = _read_rules(arguments[0])
    unpacked = entries = 0
    started, cpu = time.perf_counter(), time.process_time()
    for argument in arguments[1:]:
        path, _, media_type = argument.rpartition("=")
        with Path(path).open("rb") as stream:
            scan = scan_layer(stream, media_type, rules)
        unpacked += scan.unpacked_bytes
        entries += scan.entries
    return {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - cpu,
        "unpacked_bytes": unpacked,
        "entries": entries,
        "peak_bytes": _peak_bytes(),
    }


def hash_layers(arguments: Sequence[str]) -> JsonValue:
    """Processor seconds of the SHA-256 of the same unpacked bytes, and only that: inflating them is not counted."""
    state, seconds, unpacked = hashlib.sha256(), 0.0, 0
    for path in arguments:
        with Path(path).open("rb") as stream:
            for chunk in inflate(iter(lambda: stream.read(_CHUNK_BYTES), b"")):
                started = time.process_time()
                state.update(chunk)
                seconds += time.process_time() - started
                unpacked += len(chunk)
    return {"cpu_seconds": seconds, "unpacked_bytes": unpacked}


def walk_layers(arguments: Sequence[str]) -> JsonValue:
    """Processor seconds of the standard library for less: tarfile, its gzip, and a SHA-256 a file."""
    started = time.process_time()
    for path in arguments:
        with tarfile.open(path, "r:*") as tar:
            for member in tar:
                file = tar.extractfile(member) if member.isreg() else None
                if file is not None:
                    hashlib.file_digest(file, "sha256")  # type: ignore[arg-type]
    return {"cpu_seconds": time.process_time() - started}


def strip_history(arguments: Sequence[str]) -> JsonValue:
    """Strip the repository in a folder down to a base commit; then, timed apart, write and prove the result."""
    from pipeline.adapters.git import prove_clean, read_folder

    repository, base_commit = arguments
    started, cpu = time.perf_counter(), time.process_time()
    clean = make_clean_repository(read_folder(Path(repository)), base_commit, "repository", keep=lambda _: False)
    ended, cpu_ended = time.perf_counter(), time.process_time()
    prove_clean(clean)
    report = clean.report
    return {
        "seconds": ended - started,
        "cpu_seconds": cpu_ended - cpu,
        "proof_s": time.perf_counter() - ended,
        "kept": report.objects_kept,
        "dropped": report.objects_dropped,
    }


WORK: Mapping[str, Callable[[Sequence[str]], JsonValue]] = {
    "scan": scan_layers,
    "hash": hash_layers,
    "walk": walk_layers,
    "strip": strip_history,
}


def _peak_bytes() -> int:
    # not ru_maxrss: over fork and exec it keeps what the parent had in memory
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None, "Linux reports the peak of every process"
    return int(found[1]) * 1024


def _read_rules(place: str) -> Rules:
    """Of `image=target=release file`: those that the release's images are scanned with."""
    from pipeline.config import load_release
    from pipeline.plan import make_plan
    from pipeline.stages.scanning import make_rules

    image, target, release = place.split("=", 2)
    plan = make_plan(load_release(Path(release)), target)
    return make_rules(plan, plan.image(image))
