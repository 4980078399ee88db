"""What is said of a built image before it is published: SBOM, provenance, scan, checks, verdicts, statements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from pydantic import JsonValue

from pipeline.checks.evaluate import Verdict, evaluate
from pipeline.checks.observations import ImageObservation, ReleaseObservation, schema_digests
from pipeline.derive.layer import COMPRESSOR
from pipeline.derive.statements import (
    describe_material,
    load_statement,
    make_bom_statement,
    make_provenance_statement,
    make_scan_statement,
    make_sign_statement,
    make_test_statement,
)
from pipeline.derive.vendored import IMAGE_PATH
from pipeline.files import read_bytes_limited
from pipeline.layout import Layout
from pipeline.model.attestation import ResourceDescriptor, sha256_descriptor
from pipeline.model.digest import digest_of, hex_of
from pipeline.model.material import Material
from pipeline.model.record import canonical_json
from pipeline.model.reference import Reference
from pipeline.plan import Plan, PlannedImage
from pipeline.report.agreement import scanned_layers
from pipeline.report.facts import summarise_scan
from pipeline.sbom.document import BaseImage, RepositoryUnderRepair, SbomSubject, VendoredModule, make_sbom, want
from pipeline.sbom.rootfs import read_root
from pipeline.scan.record import ImageScan
from pipeline.stages.assemble import Assembled
from pipeline.stages.bases import Base
from pipeline.stages.curriculum import CURRICULUM_LAYER, make_curriculum_material
from pipeline.stages.examiner import Examination
from pipeline.stages.fileset import MAX_FILE_BYTES


@dataclass(frozen=True)
class Documents:
    """Files by name, and the verdicts of the policies that can be asked before publication."""

    files: Mapping[str, bytes]
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True)
class Built:
    """An assembled image in its layout, with what was seen of it."""

    plan: Plan
    image: PlannedImage
    base: Base
    made: Assembled
    layout: Layout
    scan: ImageScan
    examination: Examination
    inputs: str
    revision: str
    environment: tuple[Material, ...]

    @property
    def subject(self) -> Reference:
        """What all statements are about."""
        return self.image.repository.with_digest(self.made.manifest.digest)


def make_documents(built: Built) -> Documents:
    """Everything that build leaves beside the layout, except the record."""
    sbom = make_image_sbom(built)
    provenance = _provenance(built)
    verdicts = _judge(built, sbom, provenance)
    report = built.examination.report
    statements = {
        "signature": make_sign_statement(built.subject),
        "provenance": provenance,
        "sbom": make_bom_statement(built.subject, sbom),
        "scan": _scan_statement(built),
        "checks": make_test_statement(built.subject, report.results, _configuration(built)),
    }
    files = {
        "sbom.cdx.json": sbom,
        "provenance.json": canonical_json(_predicate(provenance)),
        "scan.json": built.scan.to_bytes(),
        "checks.json": report.to_bytes(),
        "policies.json": canonical_json([verdict.model_dump(mode="json") for verdict in verdicts]),
        **{f"statements/{kind}.json": statement for kind, statement in statements.items()},
    }
    return Documents(files, verdicts)


def make_image_sbom(built: Built) -> bytes:
    """CycloneDX over the image's own files."""
    made, image = built.made, built.image
    base = BaseImage(f"{built.base.reference.registry}/{built.base.reference.repository}", built.base.manifest.digest)
    subject = SbomSubject(
        image=image.id,
        version=built.plan.release.file.release,
        manifest_digest=made.manifest.digest,
        licences=image.source.definition.licences,
        bases=(base,),
        repository=_repository(image),
        modules=_modules(built),
    )
    root = read_root(built.layout, made.manifest, made.config, want)
    return make_sbom(root, subject, built.plan.release.epoch_s)


def _repository(image: PlannedImage) -> RepositoryUnderRepair | None:
    task = image.source.task
    if task is None:
        return None
    return RepositoryUnderRepair(
        name=task.repository.project,
        version=task.repository.base_version,
        base_commit=task.base_commit,
        path="/workspace/repo",
        pypi=True,
    )


def _modules(built: Built) -> tuple[VendoredModule, ...]:
    curriculum = built.image.source.definition.curriculum
    layers = {layer.name: layer.digest for layer in built.made.layers if layer.origin == "added"}
    if curriculum is None or CURRICULUM_LAYER not in layers:
        return ()
    material = make_curriculum_material(curriculum)
    module = VendoredModule(
        name=curriculum.path.rpartition("/")[2],
        revision=curriculum.revision,
        path=IMAGE_PATH,
        source=material.uri,
        licence=curriculum.licence,
        sha256=curriculum.sha256,
        layer=layers[CURRICULUM_LAYER],
    )
    return (module,)


def _provenance(built: Built) -> bytes:
    plan, image = built.plan, built.image
    external: dict[str, JsonValue] = {
        "release": plan.release.file.release,
        "image": image.id,
        "target": plan.target_name,
        "source": plan.release.file.source,
    }
    internal: dict[str, JsonValue] = {
        "addedLayers": [layer.name for layer in built.made.layers if layer.origin != "base"],
        "base": str(built.base.reference),
        "baseCommit": image.base_commit,
        "compressor": COMPRESSOR,
        "epoch": plan.release.epoch_s,
        "revision": built.revision,
    }
    return make_provenance_statement(
        built.subject,
        external=external,
        internal=internal,
        dependencies=_dependencies(built),
        builder_id=plan.target.identity.subject,
        inputs=built.inputs,
    )


def _dependencies(built: Built) -> Iterator[ResourceDescriptor]:
    base = built.base.reference
    yield ResourceDescriptor(
        uri=f"oci://{base.registry}/{base.repository}",
        name="base",
        digest={"sha256": hex_of(built.base.manifest.digest)},
    )
    commit = built.revision.partition("-")[0]
    yield ResourceDescriptor(
        uri=f"git+{built.plan.release.file.source}", name="definitions", digest={"gitCommit": commit}
    )
    for material in (*built.made.materials, *_definition_files(built), *built.environment):
        yield describe_material(material)


def _definition_files(built: Built) -> Iterator[Material]:
    source, root = built.image.source, built.plan.release.root
    paths = [source.definition_path / "image.yaml"]
    if source.task is not None and source.task_path is not None:
        names = ("task.yaml", source.task.record, source.task.packages, source.task.repository.lock)
        paths += [source.task_path / name for name in names]
    for path in paths:
        name = path.relative_to(root).as_posix()
        digest = digest_of(read_bytes_limited(path, MAX_FILE_BYTES))
        yield Material(
            uri=f"{built.plan.release.file.source}/blob/{built.revision.partition('-')[0]}/{name}",
            name=name,
            version=built.plan.release.file.release,
            kind="file",
            digests={"sha256": hex_of(digest)},
        )


def _scan_statement(built: Built) -> bytes:
    return make_scan_statement(
        built.subject,
        scanned_layers(built.scan),
        scanner=ResourceDescriptor(name=built.scan.scanner),
        rules=sha256_descriptor(built.scan.rules, name="rules"),
    )


def _configuration(built: Built) -> tuple[ResourceDescriptor, ...]:
    suite = built.image.source.definition.suite
    return (sha256_descriptor(digest_of(built.examination.report.to_bytes()), name=f"suite {suite}: full report"),)


def _judge(built: Built, sbom: bytes, provenance: bytes) -> tuple[Verdict, ...]:
    observation = ImageObservation(
        id=built.image.id,
        built=built.image.base_kind != "pinned",
        definition=built.image.source.definition,
        manifest=built.made.manifest,
        config=built.made.config,
        base_reference=str(built.base.reference),
        base_digest=built.base.manifest.digest,
        sbom=sbom,
        provenance=_predicate(provenance),
        scan=summarise_scan(built.scan),
        before=built.examination.report,
        schemas=schema_digests(built.examination.schema),
    )
    release = ReleaseObservation("build", (observation,), built.plan.target.identity)
    return evaluate(built.plan.release.policies, release, date.fromisoformat(built.plan.release.file.release))


def _predicate(statement: bytes) -> dict[str, JsonValue]:
    return load_statement(statement, "statement").predicate
