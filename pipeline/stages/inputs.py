"""What an image is made from, as one digest: when it is unchanged, building again does nothing."""

from __future__ import annotations

from pathlib import Path

from pydantic import JsonValue

from pipeline.derive.layer import COMPRESSOR
from pipeline.files import read_bytes_limited
from pipeline.model.digest import digest_of
from pipeline.model.record import canonical_json
from pipeline.plan import Plan, PlannedImage
from pipeline.stages.fileset import MAX_FILE_BYTES, walk
from pipeline.stages.scanning import read_all_fixtures

# how a target signs and waits changes nothing that is built
_ONLY_PUBLISHING = {"log_outage_budget_s", "rekor", "trusted_root"}


def digest_inputs(plan: Plan, image: PlannedImage, base_digest: str | None, revision: str) -> str:
    """Digest over the release file's part, every file of the definition and task, the pipeline, base and revision.

    The fixtures of all definitions count: every image is scanned for them.
    """
    source = image.source
    folders = [source.definition_path, plan.release.root / "pipeline"]
    if source.task_path is not None and not source.task_path.is_relative_to(source.definition_path):
        folders.append(source.task_path)
    files = {_name(plan, path): digest_of(read_bytes_limited(path, MAX_FILE_BYTES)) for path in _files(folders)}
    document: dict[str, JsonValue] = {
        "release": plan.release.file.release,
        "target": plan.target.model_dump(mode="json", exclude=_ONLY_PUBLISHING),
        "image": source.released.model_dump(mode="json"),
        "policies": [policy.model_dump(mode="json") for policy in plan.release.policies],
        "base": base_digest,
        "revision": revision,
        "compressor": COMPRESSOR,
        "files": dict(files),
        "fixtures": {name: digest_of(text) for name, text in read_all_fixtures(plan).items()},
    }
    return digest_of(canonical_json(document))


def _files(folders: list[Path]) -> list[Path]:
    return [path for folder in folders for path in walk(folder) if path.is_file()]


def _name(plan: Plan, path: Path) -> str:
    return path.relative_to(plan.release.root).as_posix()
