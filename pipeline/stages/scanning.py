"""Scanning the layers of an image on disk, each once for each state of the rules."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pipeline.derive.fixtures import make_fingerprints, read_fixtures
from pipeline.errors import IntegrityError, PipelineError
from pipeline.files import read_bytes_limited, write_atomic
from pipeline.layout import Layout
from pipeline.model.digest import hex_of
from pipeline.model.oci import Descriptor, ImageConfig, Manifest
from pipeline.plan import Plan, PlannedImage
from pipeline.ports import Reporter
from pipeline.scan.layer import scan_layer
from pipeline.scan.record import LayerScan
from pipeline.scan.rules import Rules

MAX_SCAN_BYTES = 256 << 20
# by path, whatever is in them: where a fixture would lie if a file set took one along
FIXTURE_PATHS = ("opt/arena/*fixtures/*", "opt/arena/*reference*.patch", "opt/arena/*solvers/*")


def make_rules(plan: Plan, image: PlannedImage) -> Rules:
    """Rules for one image: its base commit, and the fixtures of every definition of the release."""
    base_commits = (image.base_commit,) if image.base_commit else ()
    texts = read_all_fixtures(plan)
    return Rules(base_commits=base_commits, fingerprints=make_fingerprints(texts), path_patterns=FIXTURE_PATHS)


def read_all_fixtures(plan: Plan) -> Mapping[str, bytes]:
    """Every fixture file of every definition of the release, by definition and path."""
    texts: dict[str, bytes] = {}
    for image in plan.images:
        definition, folder = image.source.definition, image.source.definition_path
        for path, data in read_fixtures(folder, definition.fixtures.paths).items():
            texts[f"{folder.name}/{path}"] = data
    return texts


def scan_layers(
    layout: Layout, manifest: Manifest, config: ImageConfig, rules: Rules, cache: Path, reporter: Reporter
) -> tuple[LayerScan, ...]:
    """Every layer's scan, bottom first; IntegrityError when a layer's diff_id is not what the config says."""
    layers = manifest.view.layers
    scans: list[LayerScan] = []
    with reporter.step(f"scan {manifest.digest[:19]}", sum(layer.size for layer in layers)) as advance:
        for layer, diff_id in zip(layers, config.view.rootfs.diff_ids, strict=True):
            scans.append(_scan_cached(layout, layer, rules, cache))
            _check_diff_id(scans[-1], diff_id)
            advance(layer.size)
    return tuple(scans)


def _scan_cached(layout: Layout, layer: Descriptor, rules: Rules, cache: Path) -> LayerScan:
    path = cache / "scans" / f"{hex_of(layer.digest)}-{hex_of(rules.layer_digest)[:16]}.json"
    found = _read_cached(path, layer, rules)
    if found is not None:
        return found
    with layout.open(layer.digest) as blob:
        scan = scan_layer(blob, layer.media_type, rules)
    if scan.layer != layer.digest:
        raise IntegrityError(f"the stored layer is {scan.layer}", where=f"{layout.folder}, {layer.digest}")
    write_atomic(path, scan.to_bytes())
    return scan


def _read_cached(path: Path, layer: Descriptor, rules: Rules) -> LayerScan | None:
    if not path.is_file():
        return None
    try:
        scan = LayerScan.load(read_bytes_limited(path, MAX_SCAN_BYTES), str(path))
    except PipelineError:
        return None  # damaged: scanned again
    return scan if scan.layer == layer.digest and scan.rules == rules.layer_digest else None


def _check_diff_id(scan: LayerScan, diff_id: str) -> None:
    if scan.diff_id != diff_id:
        raise IntegrityError(
            f"the layer unpacks to {scan.diff_id}, and the config says {diff_id}",
            where=scan.layer,
            remedy="the image is damaged or forged: do not use it",
        )
