"""How fast a layer is scanned and a history stripped, and in how much memory; each in a process of its own."""

from __future__ import annotations

import hashlib
import io
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import JsonValue

from pipeline.adapters.machine import run_timed
from pipeline.bench.containers import read_built
from pipeline.bench.figures import Figure, make_figure
from pipeline.bench.goals import SCAN
from pipeline.bench.histories import COMMITS, FUTURE, large_history
from pipeline.bench.synthetic import MEDIA_TYPE, ordinary_layers
from pipeline.derive.layer import Entry, make_layer
from pipeline.derive.rewrite import drop_paths, rewrite_layer
from pipeline.derive.strip import plan_strip
from pipeline.files import make_private_folder
from pipeline.model.digest import digest_of
from pipeline.model.oci import OCI_LAYER_GZIP, ImageConfig
from pipeline.model.record import canonical_json
from pipeline.scan.image import judge_image
from pipeline.scan.layer import scan_layer
from pipeline.scan.rules import Rules
from pipeline.world import World

RUNS = 3
SOURCE_PATH = Path(__file__).parent.parent.parent


def measure_scan(world: World) -> Iterator[Figure]:
    """Every figure of the group."""
    with world.lock("bench"):
        folder = make_private_folder(world.paths.cache / "bench")
        with world.reporter.step("ordinary files and a long history, made once"):
            ordinary = [f"{path}={MEDIA_TYPE}" for path in ordinary_layers(folder)]
            history = large_history(folder)
        own = _scan_runs(world, _own_layers(world), "this release's layers")
        yield _speed("scan-release", own)
        large = _scan_runs(world, ordinary, "ordinary files")
        yield _speed("scan-ordinary", large, reference=_references(ordinary))
        yield _figure("scan-529", [run["seconds"] for run in large], reference=_syft(world), note=_cost(large))
        peaks = [max(run["peak_bytes"] for run in runs) for runs in (own, large)]
        yield _figure("scan-memory", [max(peaks)], note=f"this release {_mb(peaks[0])}, ordinary files {_mb(peaks[1])}")
        with world.reporter.step(f"strip, {RUNS} times"):
            strips = [_child("strip", [str(history.path), history.base_commit]) for _ in range(RUNS)]
        yield _strip(strips)
        changed, same = rewrite_one_of_five()
        yield _figure("rewrite-unchanged", [same], note=f"{changed} layer written anew, without the fixture in it")


def _own_layers(world: World) -> list[str]:
    layers: dict[str, str] = {}
    for image in world.plan.images:
        built = read_built(world, image)
        for layer in built.manifest.view.layers:
            layers.setdefault(layer.digest, f"{built.layout.path(layer.digest)}={layer.media_type}")
    return list(layers.values())


def _scan_runs(world: World, layers: list[str], what: str) -> list[Mapping[str, Any]]:
    rules = f"{world.plan.images[0].id}={world.plan.target_name}={world.plan.release.root / 'release.yaml'}"
    with world.reporter.step(f"scan {what}, {RUNS} times"):
        return [_child("scan", [rules, *layers]) for _ in range(RUNS)]


def _speed(name: str, runs: Sequence[Mapping[str, Any]], reference: str = "") -> Figure:
    speeds = [run["unpacked_bytes"] / run["cpu_seconds"] for run in runs]
    entries, unpacked = runs[0]["entries"], runs[0]["unpacked_bytes"]
    note = f"{entries:,} entries, {_mb(unpacked)} unpacked; per processor second; {_cost(runs)}"
    return _figure(name, speeds, reference=reference, note=note)


def _references(layers: list[str]) -> str:
    paths = [layer.rpartition("=")[0] for layer in layers]
    hashed, walked = _child("hash", paths), _child("walk", paths)
    unpacked = hashed["unpacked_bytes"] / 1e6
    return (
        f"sha256 of the same bytes {unpacked / hashed['cpu_seconds']:.0f} MB/s, "
        f"tarfile and a hash a file {unpacked / walked['cpu_seconds']:.0f} MB/s"
    )


def _syft(world: World) -> str:
    """The other tool, on nothing: only whether it is here. It is no part of the pipeline's environment."""
    lock = world.paths.root / "tests" / "syft.lock"
    home = f"syft-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}" if lock.is_file() else "syft"
    program = world.paths.state / home / "bin" / "syft"
    if not program.is_file():
        return "syft is not installed here (tests/integration/test_sbom_syft.py installs it)"
    built = read_built(world, world.plan.images[0])
    command = [str(program.with_name("python")), str(program), "scan", f"oci-dir:{built.layout.folder}", "-q"]
    with tempfile.TemporaryDirectory(prefix="bench-") as home_path:
        quiet = {"HOME": home_path, "SYFT_CHECK_FOR_APP_UPDATE": "false"}
        ran = run_timed([*command, "-o", "syft-json"], folder=world.paths.root, variables=quiet)
    unpacked = sum(layer.size for layer in built.manifest.view.layers)
    return f"syft on {built.record.image}, {_mb(unpacked)} packed: {ran.seconds:.1f} s"


def _strip(runs: Sequence[Mapping[str, Any]]) -> Figure:
    proof_s = median(run["proof_s"] for run in runs)
    kept, dropped = runs[0]["kept"], runs[0]["dropped"]
    note = f"{COMMITS:,} commits, {FUTURE:,} of them future; of {kept + dropped:,} objects {kept:,} stay; {_cost(runs)}"
    beside = f"writing the result and proving it with dulwich, which comes on top: {proof_s:.2f} s"
    return _figure("strip-history", [run["seconds"] for run in runs], reference=beside, note=note)


def rewrite_one_of_five() -> tuple[int, int]:
    """Five layers, a fixture in the third: how many are written anew by the strip, how many keep their digest."""
    blobs = [make_layer([Entry(f"usr/share/part{number}", "file", b"ordinary\n" * 400)], 0)[0] for number in range(5)]
    blobs[2] = make_layer([Entry("opt/kept", "file", b"kept\n"), Entry("opt/fixtures/x", "file", b"answer\n")], 0)[0]
    rules = Rules(path_patterns=("opt/fixtures/*",))
    scans = [scan_layer(io.BytesIO(blob), OCI_LAYER_GZIP, rules) for blob in blobs]
    rootfs: dict[str, JsonValue] = {"type": "layers", "diff_ids": [one.diff_id for one in scans]}
    config = ImageConfig(canonical_json({"architecture": "amd64", "os": "linux", "rootfs": rootfs}))
    plan = plan_strip(judge_image(scans, config, rules), scans, {})
    after = [_rewritten(blob, plan.layers.get(scan.layer)) for blob, scan in zip(blobs, scans, strict=True)]
    same = sum(digest_of(old) == digest_of(new) for old, new in zip(blobs, after, strict=True))
    return len(blobs) - same, same


def _rewritten(blob: bytes, paths: frozenset[bytes] | None) -> bytes:
    out = io.BytesIO()
    if paths is None or rewrite_layer(io.BytesIO(blob), drop_paths(paths), out) is None:
        return blob
    return out.getvalue()


def _child(work: str, words: Sequence[str]) -> Mapping[str, Any]:
    ran = run_timed([sys.executable, "-m", "pipeline.bench", work, *words], folder=SOURCE_PATH)
    result: Mapping[str, Any] = json.loads(ran.output)
    return result


def _cost(runs: Sequence[Mapping[str, Any]]) -> str:
    wall, cpu = (median(run[key] for run in runs) for key in ("seconds", "cpu_seconds"))
    return f"{wall:.2f} s by the clock, {cpu:.2f} s of a processor"


def _mb(size: float) -> str:
    return f"{size / 1e6:.0f} MB"


def _figure(name: str, samples: Sequence[float], *, reference: str = "", note: str = "") -> Figure:
    return make_figure("scan", name, SCAN[name], samples, reference=reference, note=note)
