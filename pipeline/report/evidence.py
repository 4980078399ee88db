"""The files of an evidence folder that follow from its primary files, and the index over all of them."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.model.digest import digest_of
from pipeline.model.evidence import EvidenceFile, EvidenceIndex, Verdicts
from pipeline.report.changes import compare
from pipeline.report.facts import ImageFacts, ReleaseFacts
from pipeline.report.markdown import render_markdown
from pipeline.report.page import render_page
from pipeline.report.snapshot import take_snapshot

INDEX = "evidence.json"


def derive_files(facts: ReleaseFacts) -> dict[str, bytes]:
    """Path -> bytes of everything that is computed; the same facts give the same bytes."""
    changes = compare(facts.previous.snapshot, take_snapshot(facts)) if facts.previous else None
    files = {
        "sizes.json": facts.sizes.to_bytes(),
        "policies.json": Verdicts(
            verdicts=tuple(verdict.model_dump(mode="json") for verdict in facts.verdicts)
        ).to_bytes(),
        "state.json": facts.state.to_bytes(),
        "report.md": render_markdown(facts, changes).encode(),
        "report.html": render_page(facts, changes).encode(),
    }
    for image in facts.images:
        files |= _image_files(image)
    return files


def make_index(facts: ReleaseFacts, files: Mapping[str, bytes]) -> bytes:
    """evidence.json over all other files."""
    listed = tuple(
        EvidenceFile(path=path, digest=digest_of(data), size=len(data)) for path, data in sorted(files.items())
    )
    return EvidenceIndex(
        release=facts.inputs.release,
        target=facts.inputs.target_name,
        verdict="passed" if facts.passed else "failed",
        images={image.id: image.manifest.digest for image in facts.images},
        files=listed,
    ).to_bytes()


def _image_files(image: ImageFacts) -> dict[str, bytes]:
    folder = f"images/{image.id}"
    return {f"{folder}/sbom.cdx.json": image.sbom, f"{folder}/agreement.json": image.agreement.to_bytes()}
