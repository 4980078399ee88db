"""Review: everything in an evidence folder checked again, offline, by whoever has it. One changed byte fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pipeline.derive.release_manifest import Released, make_release_manifest
from pipeline.errors import IntegrityError, PipelineError, StageError, VerificationError
from pipeline.files import read_bytes_limited
from pipeline.model.attestation import PREDICATE_TYPES
from pipeline.model.digest import Digest, digest_of
from pipeline.model.evidence import (
    PREVIOUS,
    RELEASE_BUNDLE,
    EvidenceIndex,
    EvidenceInputs,
    PreviousRelease,
    Pull,
    attestation_path,
)
from pipeline.model.oci import ImageConfig, Manifest
from pipeline.model.reference import load_reference
from pipeline.model.release import Target
from pipeline.ports import Attested, BundleVerifier, Reporter
from pipeline.report.evidence import INDEX, derive_files, make_index
from pipeline.report.facts import Attestations, ImageFacts, ReleaseFacts, load_facts, manifest_type
from pipeline.stages.attestations import KINDS
from pipeline.stages.evidence import INPUTS, TRUSTED_ROOT
from pipeline.stages.release_documents import DIAGNOSIS, FOLDER, check_diagnosis, check_documents
from pipeline.stages.release_manifest import verify_release

MAX_FILES = 20_000
MAX_FILE_BYTES = 256 << 20

IMAGE_FILES = ("manifest.json", "config.json", "pull.json", "scan.json", "checks-after.json", "schema.json")

MakeVerifier = Callable[[Target, bytes], BundleVerifier]


@dataclass(frozen=True)
class Evidence:
    """A folder whose bytes, images and bundles hold: its index, its files by path, and the facts that they show."""

    index: EvidenceIndex
    files: Mapping[str, bytes]
    facts: ReleaseFacts


@dataclass(frozen=True)
class Review:
    """What a review found: the facts, how many files and bundles were checked, and the digest of evidence.json."""

    facts: ReleaseFacts
    files: int
    bundles: int
    index: Digest


def review(folder: Path, expected: Mapping[str, Target], make_verifier: MakeVerifier, reporter: Reporter) -> Review:
    """Check a folder as `review_evidence` does, and what was made from it since: documents and diagnosis."""
    found = review_evidence(folder, expected, make_verifier, reporter)
    further = check_documents(folder, found.facts, found.index) + check_diagnosis(folder, found.index)
    return replace(found, files=found.files + further)


def review_evidence(
    folder: Path, expected: Mapping[str, Target], make_verifier: MakeVerifier, reporter: Reporter
) -> Review:
    """Check a folder; IntegrityError names the file that does not hold, VerificationError a release that failed.

    `expected` are the targets of this clone's release file by name: the folder's target must be one of them.
    `make_verifier` takes the target and the folder's trusted root.
    """
    # 1-4. Bytes, target, images, bundles.
    evidence = load_evidence(folder, expected, make_verifier, reporter)
    facts = evidence.facts
    # 5. Everything that follows from these is computed again and compared.
    _check_derived(facts, evidence.index, evidence.files)
    # 6. The release that it is compared with is the one beside it, where there is one.
    if facts.previous is not None:
        _check_previous(folder, facts.inputs, facts.previous)
    # 7. The verdict that was written is the verdict.
    if not facts.passed:
        raise VerificationError(
            "the evidence is intact, and the release does not pass", where=str(folder / "report.md")
        )
    # the index is in its one canonical form, as was checked
    return Review(facts, len(evidence.files), count_bundles(facts.inputs), digest_of(evidence.index.to_bytes()))


def load_evidence(
    folder: Path, expected: Mapping[str, Target] | None, make_verifier: MakeVerifier, reporter: Reporter
) -> Evidence:
    """The primary part of a review: what a folder shows, all of it verified. IntegrityError names a file.

    Without `expected`, it may be signed by whom its own inputs name: enough to compare releases, not to trust one.
    """
    # 1. Every file is one that the index names, byte for byte.
    index, files = _read_all(folder)
    # 2. The folder is about a target of this repository, and expects its identity.
    inputs = EvidenceInputs.load(_of(files, INPUTS), INPUTS)
    if expected is not None:
        _check_target(inputs, expected)
    # 3. Manifests, configs and what was pulled belong together.
    for asked in inputs.images:
        for name in IMAGE_FILES:
            _of(files, f"images/{asked.image}/{name}")
        _check_image(asked.image, files)
    # 4. Every bundle, against the trusted root and the identity; the release manifest names all the others.
    verifier = make_verifier(inputs.target, _of(files, TRUSTED_ROOT))
    with reporter.step("verify bundles", count_bundles(inputs)) as advance:
        attested = {asked.image: _verify_bundles(asked.image, files, verifier, advance) for asked in inputs.images}
        facts = load_facts(files, attested)
        _verify_release(facts, _of(files, RELEASE_BUNDLE), verifier)
        advance(1)
    return Evidence(index, files, facts)


def count_bundles(inputs: EvidenceInputs) -> int:
    """One of each kind an image, and the release manifest."""
    return len(inputs.images) * len(KINDS) + 1


def _of(files: Mapping[str, bytes], path: str) -> bytes:
    if path not in files:
        raise IntegrityError(f"{INDEX} does not name this file", where=path)
    return files[path]


def _check_previous(folder: Path, inputs: EvidenceInputs, previous: PreviousRelease) -> None:
    before = previous.snapshot
    if before.target != inputs.target_name or before.release >= inputs.release:
        raise IntegrityError("not an earlier release on the same target", where=PREVIOUS)
    index = folder.resolve().parent.parent / before.release / before.target / INDEX
    if index.is_file() and digest_of(read_bytes_limited(index, MAX_FILE_BYTES)) != previous.index:
        raise IntegrityError(
            f"the evidence of {before.release} is not the one that this release was compared with",
            where=PREVIOUS,
            remedy="when that evidence was rightly written again, run: nox -s verify",
        )


def _read_all(folder: Path) -> tuple[EvidenceIndex, dict[str, bytes]]:
    if not (folder / INDEX).is_file():
        remedy = "name a folder with evidence.json; `nox -s verify` writes one"
        raise StageError("not an evidence folder", where=str(folder / INDEX), remedy=remedy)
    raw = read_bytes_limited(folder / INDEX, MAX_FILE_BYTES)
    index = EvidenceIndex.load(raw, INDEX)
    if index.to_bytes() != raw:  # no file names its digest, so its one byte form is what makes each byte count
        raise IntegrityError("the index is not in canonical form: it was edited", where=INDEX)
    if len(index.files) > MAX_FILES:
        raise IntegrityError(f"{len(index.files)} files; the limit is {MAX_FILES}", where=INDEX)
    _check_names(folder, index)
    files: dict[str, bytes] = {}
    for listed in index.files:
        data = read_bytes_limited(folder / listed.path, MAX_FILE_BYTES)
        if len(data) != listed.size or digest_of(data) != listed.digest:
            raise IntegrityError(f"the file is not the one that {INDEX} names", where=listed.path)
        files[listed.path] = data
    return index, files


def _check_names(folder: Path, index: EvidenceIndex) -> None:
    listed = {file.path for file in index.files}
    present = set()
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            raise IntegrityError("a link in an evidence folder", where=name)
        # what is made from evidence later is not in its index, and names the index instead
        if path.is_file() and name not in (INDEX, DIAGNOSIS) and not name.startswith(f"{FOLDER}/"):
            present.add(name)
    for name in sorted(listed - present):
        raise IntegrityError("the file is missing", where=name)
    for name in sorted(present - listed):
        raise IntegrityError(f"{INDEX} does not name this file", where=name)


def _check_target(inputs: EvidenceInputs, expected: Mapping[str, Target]) -> None:
    target = expected.get(inputs.target_name)
    if target is None:
        raise IntegrityError(f"no target {inputs.target_name!r} in this repository's release file", where=INPUTS)
    for name in ("kind", "identity", "registry", "repository"):
        found, wanted = getattr(inputs.target, name), getattr(target, name)
        if found != wanted:
            raise IntegrityError(f"the target's {name} is {found}, and release.yaml says {wanted}", where=INPUTS)


def _check_image(image: str, files: Mapping[str, bytes]) -> None:
    folder = f"images/{image}"
    raw = files[f"{folder}/manifest.json"]
    manifest = Manifest(raw, manifest_type(raw))
    config = ImageConfig(files[f"{folder}/config.json"])
    pull = Pull.load(files[f"{folder}/pull.json"], f"{folder}/pull.json")
    if manifest.view.config.digest != config.digest or manifest.view.config.size != len(config.raw):
        raise IntegrityError("the config is not the one that the manifest names", where=f"{folder}/config.json")
    if len(config.view.rootfs.diff_ids) != len(manifest.view.layers):
        raise IntegrityError("layers and diff_ids differ in number", where=f"{folder}/config.json")
    wanted = {blob.digest: blob.size for blob in (manifest.view.config, *manifest.view.layers)}
    found = {blob.digest: blob.received_bytes for blob in pull.blobs}
    ids = {pull.engine_image_id, pull.person_pull_image_id}
    if pull.tag_digest != manifest.digest or found != wanted or ids != {config.digest}:
        raise IntegrityError("what was pulled is not this image", where=f"{folder}/pull.json")


def _verify_bundles(
    image: str, files: Mapping[str, bytes], verifier: BundleVerifier, advance: Callable[[int], None]
) -> Attestations:
    raw = files[f"images/{image}/manifest.json"]
    attested: dict[str, Attested] = {}
    for kind in KINDS:
        path = attestation_path(image, kind)
        if path not in files:
            raise IntegrityError(f"there is no {kind} attestation", where=path)
        try:
            attested[kind] = verifier.verify(
                files[path], subject_digest=digest_of(raw), predicate_type=PREDICATE_TYPES[kind]
            )
        except PipelineError as error:
            raise IntegrityError(f"the bundle does not verify: {error.what}", where=path) from error
        advance(1)
    return attested  # type: ignore[return-value]


def _verify_release(facts: ReleaseFacts, bundle: bytes, verifier: BundleVerifier) -> None:
    inputs = facts.inputs
    images = [_released(image) for image in facts.images]
    expected = make_release_manifest(inputs.release, inputs.target_name, inputs.source, images)
    verify_release(bundle, expected, RELEASE_BUNDLE, verifier)


def _released(image: ImageFacts) -> Released:
    bundles = {kind: digest_of(image.attestations[kind].bundle) for kind in KINDS}
    return Released(image.id, load_reference(image.asked.reference, INPUTS), image.manifest.digest, bundles)


def _check_derived(facts: ReleaseFacts, index: EvidenceIndex, files: Mapping[str, bytes]) -> None:
    derived = derive_files(facts)
    for path, data in sorted(derived.items()):
        if files.get(path) != data:
            raise IntegrityError("the file does not follow from the others", where=path)
    expected = EvidenceIndex.load(make_index(facts, files), INDEX)
    if expected != index:
        raise IntegrityError("the index does not follow from the files", where=INDEX)
