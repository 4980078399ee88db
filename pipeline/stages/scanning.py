"""The rules of a release, and scans of its layers on disk, each made once for each state of the rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.derive.fixtures import make_fingerprints, read_fixtures
from pipeline.errors import StageError
from pipeline.files import read_bytes_limited, write_atomic
from pipeline.model.digest import hex_of
from pipeline.plan import Plan, PlannedImage
from pipeline.scan.record import LayerScan
from pipeline.scan.rules import Rules

MAX_SCAN_BYTES = 256 << 20
# by path, whatever is in them: where a fixture would lie if a file set took one along
FIXTURE_PATHS = ("opt/arena/*fixtures/*", "opt/arena/*reference*.patch", "opt/arena/*solvers/*")


@dataclass(frozen=True)
class FolderCache:
    """`stages.scan.ScanCache` in a folder that is safe to delete."""

    folder: Path

    def get(self, layer: str, rules: str) -> bytes | None:
        """The bytes of a LayerScan; None when there is none, or a damaged one."""
        path = self._path(layer, rules)
        if not path.is_file():
            return None
        raw = read_bytes_limited(path, MAX_SCAN_BYTES)
        try:
            LayerScan.load(raw, str(path))
        except StageError:
            return None
        return raw

    def put(self, layer: str, rules: str, scan: bytes) -> None:
        """Keep the bytes of a LayerScan."""
        write_atomic(self._path(layer, rules), scan)

    def _path(self, layer: str, rules: str) -> Path:
        return self.folder / f"{hex_of(layer)}-{hex_of(rules)[:16]}.json"


def make_rules(plan: Plan, image: PlannedImage) -> Rules:
    """Rules for one image: its base commit, and the fixtures of every definition of the release."""
    base_commits = (image.base_commit,) if image.base_commit else ()
    fingerprints = make_fingerprints(read_all_fixtures(plan))
    return Rules(base_commits=base_commits, fingerprints=fingerprints, path_patterns=FIXTURE_PATHS)


def read_all_fixtures(plan: Plan) -> Mapping[str, bytes]:
    """Every fixture file of every definition of the release, by definition and path."""
    texts: dict[str, bytes] = {}
    for image in plan.images:
        definition, folder = image.source.definition, image.source.definition_path
        for path, data in read_fixtures(folder, definition.fixtures.paths).items():
            texts[f"{folder.name}/{path}"] = data
    return texts
