"""Verbs that write what is made from evidence: the release documents, and the diagnosis of a training log."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from pipeline.errors import StageError, UsageError
from pipeline.files import read_bytes_limited, write_atomic
from pipeline.model.digest import digest_of
from pipeline.report.diagnosis import DiagnosedLog, TrainingDiagnosis
from pipeline.world import Settings, World

MAX_TASKS = 10_000


def documents(options: argparse.Namespace, settings: Settings) -> None:
    """Write documents/ into the release's evidence, which is reviewed first; print what would be admitted."""
    from pipeline.report.admission import Admission
    from pipeline.report.documents import ADMISSION, TASKS
    from pipeline.stages.release_documents import FOLDER, write_documents
    from pipeline.stages.review import review_evidence

    world = World(options.release, options.target, settings)
    folder, targets = world.paths.evidence, world.plan.release.file.targets
    with world.lock("documents"):
        found = review_evidence(folder, targets, world.make_reviewer, world.reporter)
        written = write_documents(folder, world.plan, found.facts, found.index)
    for name in sorted(written):
        print(f"{folder / FOLDER / name}  {len(written[name]):,} bytes")
    admission = Admission.load(written[ADMISSION], ADMISSION)
    print(f"\n{len(written[TASKS].splitlines())} tasks; {len(admission.rules)} rules of admission")
    for rule in admission.rules:
        if not rule.passed:
            print(f"  fails {rule.rule}: {_shown(rule.value)}; the limit is {_shown(rule.limit)}")
    print("the consumer would admit it" if admission.admissible else "the consumer would not admit it as it is")


def diagnose(options: argparse.Namespace, settings: Settings) -> None:
    """Write training-diagnosis.json into the release's evidence from the log `options.log`, and print it in short."""
    from pipeline.report.diagnosis import diagnose as run
    from pipeline.report.training_log import MAX_LOG_BYTES, load_log
    from pipeline.stages.release_documents import DIAGNOSIS, check_documents, read_task_ids
    from pipeline.stages.review import review_evidence

    if options.tasks is not None and not 1 <= options.tasks <= MAX_TASKS:
        raise UsageError(f"--tasks {options.tasks}", remedy=f"from 1 to {MAX_TASKS}")
    world = World(options.release, options.target, settings)
    folder, targets = world.paths.evidence, world.plan.release.file.targets
    raw = _read_log(options.log, MAX_LOG_BYTES)
    log = load_log(raw, str(options.log))
    with world.lock("diagnose"):
        reviewed = review_evidence(folder, targets, world.make_reviewer, world.reporter)
        check_documents(folder, reviewed.facts, reviewed.index)
        task_ids, tasks_digest = read_task_ids(folder)
        source = DiagnosedLog(
            evidence=reviewed.index, log=digest_of(raw), log_bytes=len(raw), tasks_digest=tasks_digest
        )
        found = run(log, source, options.tasks or len(task_ids) or None, task_ids)
        write_atomic(folder / DIAGNOSIS, found.to_bytes())
    print(_render(found))
    print(f"\n{folder / DIAGNOSIS}")


def _read_log(path: Path, limit_bytes: int) -> bytes:
    try:
        return read_bytes_limited(path, limit_bytes)
    except FileNotFoundError as error:
        remedy = "name an exported training log; a relative path starts at the root of the repository"
        raise StageError("no such log", where=str(path.absolute()), remedy=remedy) from error


def _render(found: TrainingDiagnosis) -> str:
    cover, groups, gradients, times = found.coverage, found.groups, found.gradients, found.step_times
    lines = [
        f"steps      {cover.logged_steps} logged of {cover.expected_steps}; {cover.missing_steps} unavailable",
        f"groups     {groups.mixed} mixed, {groups.uniform} uniform, {groups.undetermined} undetermined",
        f"gradients  {gradients.zero} zero, {gradients.nonzero} not zero, {gradients.not_finite} not finite, "
        f"{gradients.unavailable} unavailable",
        f"step time  median {_seconds(times.median_s)}, 90th percentile {_seconds(times.p90_s)}",
        f"ordinals   {found.mapping.basis}: {found.mapping.rule}; {found.mapping.unmapped_steps} steps unmapped",
    ]
    for one in found.ordinals:
        mean = "unavailable" if one.groups.mean_reward is None else f"{one.groups.mean_reward:.3f}"
        lines.append(
            f"  {one.ordinal:4} {one.task_id or 'unknown':36} {one.steps:6} steps, {one.groups.mixed} mixed, "
            f"{one.gradients.zero} zero gradients, mean reward {mean}"
        )
    return "\n".join(lines)


def _seconds(value: float | None) -> str:
    return "unavailable" if value is None else f"{value:.2f} s"


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
