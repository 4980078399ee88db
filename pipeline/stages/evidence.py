"""Writing evidence: what verify saw, everything that follows from it, and the index, as one folder."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.files import read_bytes_limited, replace_tree, write_atomic
from pipeline.model.evidence import (
    PREVIOUS,
    RELEASE_BUNDLE,
    EvidenceIndex,
    EvidenceInputs,
    ImageInput,
    PreviousRelease,
    ServedSchema,
    attestation_path,
)
from pipeline.paths import Paths
from pipeline.plan import Plan
from pipeline.report.evidence import INDEX, derive_files, make_index
from pipeline.report.facts import Attestations, ReleaseFacts, load_facts
from pipeline.stages.attestations import KINDS
from pipeline.stages.records import MAX_RECORD_BYTES
from pipeline.stages.verify import VerifiedImage, VerifiedRelease

TRUSTED_ROOT = "trusted_root.json"
INPUTS = "inputs.json"


def write_evidence(
    plan: Plan,
    paths: Paths,
    verified: VerifiedRelease,
    trusted_root: bytes,
    previous: PreviousRelease | None = None,
) -> ReleaseFacts:
    """Write evidence/<release>/<target>/ and sbom/<release>/<target>/; returns the facts that they state.

    `previous` is what the report compares this release with; it is kept, so that a review needs this folder alone.
    """
    primary = collect_primary(plan, verified, trusted_root)
    if previous is not None:
        primary[PREVIOUS] = previous.to_bytes()
    facts = load_facts(primary, {image.image.id: attestations_of(image) for image in verified.images})
    files = {**primary, **derive_files(facts)}
    files[INDEX] = make_index(facts, files)
    replace_tree(paths.evidence, files)
    for image in facts.images:
        write_atomic(paths.sbom / f"{image.id}.cdx.json", image.sbom)
    return facts


def known_digests(paths: Paths) -> dict[str, str]:
    """Image id -> manifest digest, as committed evidence of this release and target names it; else empty."""
    index = paths.evidence / INDEX
    if not index.is_file():
        return {}
    return EvidenceIndex.load(read_bytes_limited(index, MAX_RECORD_BYTES), str(index)).images


def collect_primary(plan: Plan, verified: VerifiedRelease, trusted_root: bytes) -> dict[str, bytes]:
    """Path -> bytes of what was seen, nothing computed."""
    files = {
        INPUTS: _make_inputs(plan, verified.images).to_bytes(),
        TRUSTED_ROOT: trusted_root,
        RELEASE_BUNDLE: verified.manifest.bundle,
    }
    for image in verified.images:
        folder = f"images/{image.image.id}"
        files |= {
            f"{folder}/manifest.json": image.pulled.manifest.raw,
            f"{folder}/config.json": image.pulled.config.raw,
            f"{folder}/pull.json": image.pull.to_bytes(),
            f"{folder}/scan.json": image.scan.to_bytes(),
            f"{folder}/checks-after.json": image.examination.report.to_bytes(),
            f"{folder}/schema.json": ServedSchema(documents=dict(image.examination.schema)).to_bytes(),
        }
        for kind in KINDS:
            files[attestation_path(image.image.id, kind)] = image.attestations[kind].attested.bundle
    return files


def attestations_of(image: VerifiedImage) -> Attestations:
    """What was attested, by kind."""
    return {kind: found.attested for kind, found in image.attestations.items()}


def _make_inputs(plan: Plan, verified: Sequence[VerifiedImage]) -> EvidenceInputs:
    return EvidenceInputs(
        release=plan.release.file.release,
        source=plan.release.file.source,
        target_name=plan.target_name,
        target=plan.target,
        images=tuple(
            ImageInput(
                image=seen.image.id,
                reference=str(seen.image.reference),
                pinned=seen.image.base_kind == "pinned",
                base=attested_base(attestations_of(seen)),
                definition=seen.image.source.definition,
                task=seen.image.source.task,
                published=seen.image.source.released.published,
                budgets=seen.image.source.released.budgets,
                task_ids=seen.image.source.task_ids,
            )
            for seen in verified
        ),
        policies=plan.release.policies,
        name=plan.release.file.name,
        dataset=plan.release.file.dataset,
        tasks=plan.release.file.tasks,
    )


def attested_base(attestations: Attestations) -> str:
    """The pinned reference of the base, as the provenance names it."""
    predicate = attestations["provenance"].predicate
    assert isinstance(predicate, dict), "the verifier returns objects"
    definition = predicate.get("buildDefinition")
    internal = definition.get("internalParameters") if isinstance(definition, dict) else None
    base = internal.get("base") if isinstance(internal, dict) else None
    return base if isinstance(base, str) else ""
