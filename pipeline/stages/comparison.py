"""Comparing releases by their evidence folders, which are verified like a review does before anything is believed."""

from __future__ import annotations

import re
from pathlib import Path

from pipeline.errors import IntegrityError
from pipeline.files import read_bytes_limited
from pipeline.model.digest import digest_of
from pipeline.model.evidence import PreviousRelease
from pipeline.paths import Paths
from pipeline.ports import Reporter
from pipeline.report.changes import Changes, compare_releases
from pipeline.report.evidence import INDEX
from pipeline.report.facts import ReleaseFacts
from pipeline.report.snapshot import take_snapshot
from pipeline.stages.review import MAX_FILE_BYTES, MakeVerifier, load_evidence

_DATE = re.compile(r"20\d\d-\d\d-\d\d")


def load_release(folder: Path, make_verifier: MakeVerifier, reporter: Reporter) -> ReleaseFacts:
    """The facts of an evidence folder; IntegrityError names the file that does not hold.

    The target may be one that this clone no longer knows, and its identity another: comparing shows that.
    """
    return load_evidence(folder, None, make_verifier, reporter).facts


def compare_folders(old: Path, new: Path, make_verifier: MakeVerifier, reporter: Reporter) -> Changes:
    """What changed from one evidence folder to another."""
    return compare_releases(*(load_release(folder, make_verifier, reporter) for folder in (old, new)))


def find_previous(paths: Paths) -> Path | None:
    """The evidence folder of the newest earlier release on the same target, whether committed or not."""
    dates = sorted(path.name for path in paths.evidence.parent.parent.glob("*") if _DATE.fullmatch(path.name))
    folders = [paths.evidence.parent.parent / date / paths.target for date in dates if date < paths.release]
    return next((folder for folder in reversed(folders) if (folder / INDEX).is_file()), None)


def load_previous(paths: Paths, make_verifier: MakeVerifier, reporter: Reporter) -> PreviousRelease | None:
    """What previous.json says of the release before; None for the first. IntegrityError when it is damaged."""
    folder = find_previous(paths)
    if folder is None:
        return None
    facts = load_release(folder, make_verifier, reporter)
    if (facts.inputs.release, facts.inputs.target_name) != (folder.parent.name, folder.name):
        raise IntegrityError(
            f"the evidence of {facts.inputs.release} on {facts.inputs.target_name} lies in another release's folder",
            where=str(folder),
            remedy="move it to where it belongs, or remove it",
        )
    index = digest_of(read_bytes_limited(folder / INDEX, MAX_FILE_BYTES))
    return PreviousRelease(index=index, snapshot=take_snapshot(facts))
