"""The facts of a release, out of its primary evidence files and verified attestations: pure, the same for everybody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from pydantic import JsonValue

from pipeline.checks.evaluate import Verdict, evaluate
from pipeline.checks.observations import ImageObservation, ReleaseObservation, ScanFinding, ScanSummary, schema_digests
from pipeline.errors import IntegrityError
from pipeline.model.attestation import TestResult
from pipeline.model.evidence import (
    PREVIOUS,
    Agreement,
    EvidenceInputs,
    ImageInput,
    PreviousRelease,
    Pull,
    ServedSchema,
    State,
    StateName,
    StateValue,
)
from pipeline.model.finding import CheckReport, CheckResult, Outcome
from pipeline.model.oci import OCI_MANIFEST, ImageConfig, Manifest
from pipeline.model.record import canonical_json
from pipeline.model.stages import AttestationKind
from pipeline.ports import Attested
from pipeline.report.agreement import compare_runs
from pipeline.report.sizes import Sizes, measure
from pipeline.scan.record import ImageScan

Attestations = Mapping[AttestationKind, Attested]


@dataclass(frozen=True)
class ImageFacts:
    """Everything that is known of one image, parsed from its primary files."""

    asked: ImageInput
    manifest: Manifest
    config: ImageConfig
    pull: Pull
    attestations: Attestations
    scan: ImageScan
    checks: CheckReport
    schema: Mapping[str, JsonValue]
    agreement: Agreement

    @property
    def id(self) -> str:
        """The image's id."""
        return self.asked.image

    @property
    def sbom(self) -> bytes:
        """The attested SBOM, canonical."""
        return canonical_json(self.attestations["sbom"].predicate)

    def predicate(self, kind: AttestationKind) -> dict[str, JsonValue]:
        """An attestation's predicate; IntegrityError unless it is an object."""
        predicate = self.attestations[kind].predicate
        if not isinstance(predicate, dict):
            raise IntegrityError(f"the {kind} predicate is not an object", where=self.id)
        return predicate


@dataclass(frozen=True)
class ReleaseFacts:
    """A release as its evidence shows it."""

    inputs: EvidenceInputs
    images: tuple[ImageFacts, ...]
    sizes: Sizes
    verdicts: tuple[Verdict, ...]
    state: State
    previous: PreviousRelease | None = None

    @property
    def passed(self) -> bool:
        """Every check passed, both runs agree, and no policy rejects."""
        clean = all(not image.checks.failed and not image.agreement.disagreements for image in self.images)
        return clean and all(verdict.outcome != "fail" for verdict in self.verdicts)


def load_facts(files: Mapping[str, bytes], attested: Mapping[str, Attestations]) -> ReleaseFacts:
    """Facts from primary files by path, and attestations by image that were verified by the caller."""
    inputs = EvidenceInputs.load(files["inputs.json"], "inputs.json")
    images = tuple(_load_image(asked, files, attested[asked.image]) for asked in inputs.images)
    sizes = measure({image.id: image.manifest for image in images})
    observation = ReleaseObservation("verify", tuple(map(_observe, images)), inputs.target.identity)
    verdicts = evaluate(inputs.policies, observation, date.fromisoformat(inputs.release))
    previous = PreviousRelease.load(files[PREVIOUS], PREVIOUS) if PREVIOUS in files else None
    return ReleaseFacts(inputs, images, sizes, verdicts, _state(images), previous)


def manifest_type(raw: bytes) -> str:
    """The media type that a manifest states of itself; OCI's where it states none."""
    return Manifest(raw, OCI_MANIFEST).view.media_type or OCI_MANIFEST


def added_bytes(image: ImageFacts) -> int:
    """Compressed bytes of the layers that are not the base's, as the image's own history names them."""
    history = image.config.view.history or ()
    added = [not (entry.created_by or "").startswith("base: ") for entry in history if not entry.empty_layer]
    layers = image.manifest.view.layers
    if len(added) != len(layers):
        return 0  # a pinned image has a history of somebody else's making, and adds nothing
    return sum(layer.size for layer, mine in zip(layers, added, strict=True) if mine)


def summarise_scan(scan: ImageScan) -> ScanSummary:
    """What the policies look at of a scan; a part that could not be read makes it incomplete."""
    findings = tuple(ScanFinding(leak.reach, leak.kind, leak.path, leak.layer) for leak in scan.leaks)
    complete = all(leak.kind != "unreadable" for leak in scan.leaks)
    return ScanSummary(findings, complete, tuple(layer.layer for layer in scan.layers))


def _load_image(asked: ImageInput, files: Mapping[str, bytes], attestations: Attestations) -> ImageFacts:
    folder = f"images/{asked.image}"
    checks = CheckReport.load(files[f"{folder}/checks-after.json"], f"{folder}/checks-after.json")
    scan = ImageScan.load(files[f"{folder}/scan.json"], f"{folder}/scan.json")
    raw = files[f"{folder}/manifest.json"]
    manifest = Manifest(raw, manifest_type(raw))
    return ImageFacts(
        asked=asked,
        manifest=manifest,
        config=ImageConfig(files[f"{folder}/config.json"]),
        pull=Pull.load(files[f"{folder}/pull.json"], f"{folder}/pull.json"),
        attestations=attestations,
        scan=scan,
        checks=checks,
        schema=ServedSchema.load(files[f"{folder}/schema.json"], f"{folder}/schema.json").documents,
        agreement=compare_runs(asked.image, attestations["checks"], attestations["scan"], checks, scan),
    )


def _observe(image: ImageFacts) -> ImageObservation:
    provenance = image.predicate("provenance")
    return ImageObservation(
        id=image.id,
        built=not image.asked.pinned,
        definition=image.asked.definition,
        manifest=image.manifest,
        config=image.config,
        base_reference=image.asked.base,
        base_digest=image.asked.base.rpartition("@")[2],
        sbom=image.sbom,
        provenance=provenance,
        scan=summarise_scan(image.scan),
        before=_attested_report(image),
        after=image.checks,
        attested=tuple(image.attestations.values()),
        schemas=schema_digests(image.schema),
    )


def _attested_report(image: ImageFacts) -> CheckReport:
    """The run before publication as it was attested: outcomes by id; expected and observed stayed with the builder.

    A check that came out the same is taken to have seen the same, so that only outcomes are compared.
    """
    attested = TestResult.model_validate_json(canonical_json(image.predicate("checks")))
    outcomes: dict[str, Outcome] = dict.fromkeys(attested.passed_tests, "pass")
    outcomes |= dict.fromkeys(attested.failed_tests, "fail")
    now = {result.id: result for result in image.checks.results}
    results = tuple(_attested_result(name, outcome, now.get(name)) for name, outcome in sorted(outcomes.items()))
    return CheckReport(image=image.id, manifest_digest=image.manifest.digest, results=results)


def _attested_result(name: str, outcome: Outcome, now: CheckResult | None) -> CheckResult:
    if now is not None and now.outcome == outcome:
        return now
    return CheckResult(id=name, statement="", expected=None, observed=None, outcome=outcome)


def _state(images: tuple[ImageFacts, ...]) -> State:
    def value(done: bool) -> StateValue:
        return "done" if done else "failed"

    states: dict[StateName, StateValue] = {
        "publication": value(all(image.pull.tag_digest == image.manifest.digest for image in images)),
        "local checks": value(all(not image.agreement.before_failed for image in images)),
        "anonymous replay": value(all(not image.checks.failed for image in images)),
        "admission": "not performed",
        "training": "not performed",
        "private evaluation": "not performed",
    }
    return State(states=states)
