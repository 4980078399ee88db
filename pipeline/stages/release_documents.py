"""Writing the release documents from reviewed evidence, and checking those that lie in an evidence folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from pipeline.errors import ConfigError, IntegrityError, StageError
from pipeline.files import read_bytes_limited, replace_tree
from pipeline.model.digest import Digest, digest_of
from pipeline.plan import Plan
from pipeline.report.admission import Admission
from pipeline.report.diagnosis import TrainingDiagnosis
from pipeline.report.documents import (
    ADMISSION,
    LIMITS,
    RECORD_PATH,
    TASKS,
    TaskLine,
    make_release_documents,
    names_evidence,
    record_digests,
)
from pipeline.report.facts import ReleaseFacts

FOLDER = "documents"
DIAGNOSIS = "training-diagnosis.json"
LIMITS_FILE = f"policies/{LIMITS}"
MAX_DOCUMENTS = 1_000
MAX_DOCUMENT_BYTES = 64 << 20
AGAIN = "run: nox -s documents"


def write_documents(folder: Path, plan: Plan, facts: ReleaseFacts, evidence: Digest) -> dict[str, bytes]:
    """Write documents/ of an evidence folder that was reviewed; path -> bytes of what was written.

    `facts` and `evidence`, the digest of evidence.json, are what the review saw. Records and limits are the clone's.
    StageError when a record is not the one that the evidence names.
    """
    limits = read_bytes_limited(plan.release.root / LIMITS_FILE, MAX_DOCUMENT_BYTES)
    files = make_release_documents(facts, evidence, read_records(plan, facts), limits)
    replace_tree(folder / FOLDER, files)
    return files


def read_records(plan: Plan, facts: ReleaseFacts) -> dict[str, bytes]:
    """Task id -> original record, for tasks whose record this clone has; StageError when we built from another one."""
    wanted = record_digests(facts)
    built = {task_id for image in facts.images if not image.asked.pinned for task_id in image.asked.task_ids}
    records: dict[str, bytes] = {}
    for source in plan.release.images:
        if source.task is None or source.task_path is None or source.task.id not in wanted:
            continue
        path = source.task_path / source.task.record
        record = read_bytes_limited(path, MAX_DOCUMENT_BYTES)
        if digest_of(record) == wanted[source.task.id]:
            records[source.task.id] = record
        elif source.task.id in built:
            raise StageError(
                f"the evidence is about another record of {source.task.id}: {wanted[source.task.id]}",
                where=str(path),
                remedy="check out the revision that was released, or run build, publish and verify again",
            )
    return records


def check_documents(folder: Path, facts: ReleaseFacts, evidence: Digest) -> int:
    """Compute documents/ again and compare; the number of files, 0 when there are none.

    IntegrityError names a file that does not follow from the evidence, StageError one that is of other evidence.
    """
    files = _read_documents(folder)
    if not files:
        return 0
    # 1. What the documents were made from besides the evidence: limits and records, byte for byte.
    _check_limits(files)
    records = _check_records(files, facts)
    # 2. The documents again.
    try:
        expected = make_release_documents(facts, evidence, records, files[LIMITS])
    except ConfigError as error:
        raise IntegrityError(error.what, where=f"{FOLDER}/{LIMITS}", remedy=AGAIN) from error
    # 3. Each of them, and nothing else.
    for path in sorted(expected.keys() | files.keys()):
        _compare(path, files.get(path), expected.get(path), evidence)
    return len(files)


def check_diagnosis(folder: Path, evidence: Digest) -> int:
    """Check that training-diagnosis.json is ours, whole, and about this evidence; the number of files, 0 or 1.

    It was computed from a log that is not in the folder, so that its figures cannot be computed again here.
    """
    path = folder / DIAGNOSIS
    if not path.is_file():
        return 0
    raw = read_bytes_limited(path, MAX_DOCUMENT_BYTES)
    found = TrainingDiagnosis.load(raw, DIAGNOSIS)
    if found.to_bytes() != raw or found.content != found.digest_content():
        raise IntegrityError("the file was edited", where=DIAGNOSIS, remedy="run: nox -s diagnose")
    if found.evidence != evidence:
        raise _stale(DIAGNOSIS, found.evidence, "run: nox -s diagnose")
    tasks_digest = read_task_ids(folder)[1]
    if found.tasks_digest is not None and tasks_digest not in (None, found.tasks_digest):
        raise IntegrityError(f"made with another {TASKS}", where=DIAGNOSIS, remedy="run: nox -s diagnose")
    return 1


def _read_documents(folder: Path) -> dict[str, bytes]:
    root = folder / FOLDER
    paths = [path for path in sorted(root.rglob("*")) if not path.is_dir()] if root.is_dir() else []
    if len(paths) > MAX_DOCUMENTS:
        raise IntegrityError(f"{len(paths)} files; the limit is {MAX_DOCUMENTS}", where=FOLDER)
    return {path.relative_to(root).as_posix(): read_bytes_limited(path, MAX_DOCUMENT_BYTES) for path in paths}


def _check_limits(files: Mapping[str, bytes]) -> None:
    for name in (LIMITS, ADMISSION):
        if name not in files:
            raise IntegrityError("the file is missing", where=f"{FOLDER}/{name}", remedy=AGAIN)
    try:
        admission = Admission.model_validate_json(files[ADMISSION])
    except ValidationError as error:
        raise IntegrityError("not an admission record", where=f"{FOLDER}/{ADMISSION}", remedy=AGAIN) from error
    if admission.limits != digest_of(files[LIMITS]):
        raise IntegrityError(
            "one was not made with the other", where=f"{FOLDER}/{LIMITS} and {FOLDER}/{ADMISSION}", remedy=AGAIN
        )


def _check_records(files: Mapping[str, bytes], facts: ReleaseFacts) -> dict[str, bytes]:
    pinned = {task_id for image in facts.images if image.asked.pinned for task_id in image.asked.task_ids}
    records: dict[str, bytes] = {}
    for task_id, wanted in record_digests(facts).items():
        path = RECORD_PATH.format(task_id=task_id)
        if path not in files and task_id in pinned:
            continue  # its publisher has it, and recorded the digest alone
        if path not in files:
            raise IntegrityError("the file is missing", where=f"{FOLDER}/{path}", remedy=AGAIN)
        if digest_of(files[path]) != wanted:
            raise IntegrityError(f"the record is not {wanted}", where=f"{FOLDER}/{path}", remedy=AGAIN)
        records[task_id] = files[path]
    return records


def _compare(path: str, found: bytes | None, expected: bytes | None, evidence: Digest) -> None:
    where = f"{FOLDER}/{path}"
    if found == expected:
        return
    if found is None:
        raise IntegrityError("the file is missing", where=where, remedy=AGAIN)
    if expected is None:
        raise IntegrityError("nothing in the evidence leads to this file", where=where, remedy="remove it")
    if not names_evidence(found, evidence):
        raise _stale(where, "", AGAIN)
    raise IntegrityError("the file does not follow from the evidence", where=where, remedy=AGAIN)


def _stale(where: str, other: str, remedy: str) -> StageError:
    named = f" ({other})" if other else ""
    return StageError(f"made from other evidence than this{named}", where=where, remedy=remedy)


def read_task_ids(folder: Path) -> tuple[tuple[str, ...], Digest | None]:
    """Task ids in the order of tasks.jsonl, and its digest, of a reviewed folder; nothing where there is none."""
    path = folder / FOLDER / TASKS
    if not path.is_file():
        return (), None
    raw = read_bytes_limited(path, MAX_DOCUMENT_BYTES)
    lines = [TaskLine.load(line, f"{FOLDER}/{TASKS}") for line in raw.splitlines()]
    return tuple(line.task_id for line in lines), digest_of(raw)
