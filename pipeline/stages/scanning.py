"""The rules of a release, and scans of its layers on disk, each made once for each state of the rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.derive.fixtures import make_fingerprints, read_fixtures
from pipeline.errors import ConfigError, StageError
from pipeline.files import read_bytes_limited, write_atomic
from pipeline.model.digest import hex_of
from pipeline.plan import Plan, PlannedImage
from pipeline.scan.record import LayerScan
from pipeline.scan.rules import Rules

MAX_SCAN_BYTES = 256 << 20
_OBJECT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
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


@dataclass(frozen=True)
class MemoryCache:
    """`stages.scan.ScanCache` of one run: a layer of several images is read once, and no earlier run is believed."""

    _scans: dict[tuple[str, str], bytes] = field(default_factory=dict, repr=False)

    def get(self, layer: str, rules: str) -> bytes | None:
        """The bytes of a LayerScan that this run made, or None."""
        return self._scans.get((layer, rules))

    def put(self, layer: str, rules: str, scan: bytes) -> None:
        """Keep the bytes of a LayerScan."""
        self._scans[layer, rules] = scan


def make_rules(plan: Plan, image: PlannedImage) -> Rules:
    """Rules for one image: its base commit, the known future of its task, and all fixtures of the release.

    All of it is data in the repository, so whoever has a clone scans by the same rules.
    """
    return Rules(
        base_commits=(image.base_commit,) if image.base_commit else (),
        future_objects=read_future(plan, image),
        fingerprints=make_fingerprints(read_all_fixtures(plan)),
        path_patterns=FIXTURE_PATHS,
    )


def read_future(plan: Plan, image: PlannedImage) -> frozenset[str]:
    """Object ids of the future history of an image's task, or of the task of the image that it derives from."""
    while image.base_kind == "image":
        image = plan.image(image.base)
    task, folder = image.source.task, image.source.task_path
    if task is None or folder is None or image.base_kind == "pinned":
        return frozenset()
    return load_future(read_bytes_limited(folder / task.future, MAX_SCAN_BYTES), str(folder / task.future))


def load_future(raw: bytes, where: str) -> frozenset[str]:
    """Parse future.txt: an object id a line, lines with # are comments; ConfigError for anything else."""
    lines = [line.strip() for line in raw.decode("utf-8", "replace").splitlines()]
    ids = [line for line in lines if line and not line.startswith("#")]
    for number, line in enumerate(lines, 1):
        if line in ids and not _OBJECT_ID.fullmatch(line):
            raise ConfigError(f"not an object id: {line[:80]!r}", where=f"{where}:{number}")
    return frozenset(ids)


def render_future(objects: frozenset[str]) -> bytes:
    """The bytes of future.txt."""
    head = "# Git objects that the base commit does not reach: the future, which no layer may hold in any form.\n"
    return (head + "".join(f"{one}\n" for one in sorted(objects))).encode()


def read_all_fixtures(plan: Plan) -> Mapping[str, bytes]:
    """Every fixture file of every definition of the release, by definition and path."""
    texts: dict[str, bytes] = {}
    for image in plan.images:
        definition, folder = image.source.definition, image.source.definition_path
        for path, data in read_fixtures(folder, definition.fixtures.paths).items():
            texts[f"{folder.name}/{path}"] = data
    return texts
