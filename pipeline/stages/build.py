"""Build: derive each image by layers, strip it, prove it, check it in a real container, and leave a record.

The record is written last: a folder without one is not a built image, whatever lies in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pipeline.checks.evaluate import Verdict
from pipeline.derive.repository import CleanRepository
from pipeline.errors import PipelineError, VerificationError
from pipeline.files import remove_tree, write_atomic
from pipeline.layout import Layout
from pipeline.model.digest import digest_of
from pipeline.model.finding import CheckReport
from pipeline.model.material import Material
from pipeline.model.reference import load_reference
from pipeline.model.stages import BuiltImage, LayerRecord, OutputFile
from pipeline.paths import Paths
from pipeline.plan import Plan, PlannedImage
from pipeline.ports import Engine, PullRegistry, PushRegistry, Reporter
from pipeline.scan.record import ImageScan
from pipeline.stages.assemble import Assembled, add_layers, assemble
from pipeline.stages.bases import Base, Sources, resolve_base
from pipeline.stages.curriculum import ExamineVendored, check_curricula
from pipeline.stages.documents import Built, make_documents
from pipeline.stages.examiner import Examination, Examiner, run_together
from pipeline.stages.inputs import digest_inputs
from pipeline.stages.records import RECORD_NAME, has_record, load_built, load_config, load_manifest
from pipeline.stages.strip import strip_base


@dataclass(frozen=True)
class BuildPorts:
    """What building needs from the world. `source_registry` takes rebuilt task images; only a local target has one.

    `examine_vendored` runs a vendored curriculum outside any image.
    """

    registry: PullRegistry
    source_registry: PushRegistry | None
    sources: Sources
    engine: Engine
    examiner: Examiner
    reporter: Reporter
    revision: str
    environment: Callable[[], tuple[Material, ...]]
    prove: Callable[[CleanRepository], int]
    examine_vendored: ExamineVendored


@dataclass(frozen=True)
class BuildOutcome:
    """A built image; `made` is False when nothing had to be done. Durations in seconds by check."""

    record: BuiltImage
    made: bool
    durations: Mapping[str, float]


@dataclass(frozen=True)
class Derived:
    """An image in its layout, scanned; `present` is its record when the same inputs were built before."""

    image: PlannedImage
    base: Base | None
    made: Assembled
    layout: Layout
    scan: ImageScan | None
    inputs: str
    reports: Mapping[str, bytes]
    present: BuiltImage | None


def build(plan: Plan, paths: Paths, ports: BuildPorts) -> tuple[BuildOutcome, ...]:
    """Build every image of the plan that is not built yet; VerificationError names what does not pass."""
    # 1. Code of somebody else that goes into an image is looked at before anything is made.
    check_curricula(plan, ports.examine_vendored)

    # 2. Derive each image, after its base.
    derived: dict[str, Derived] = {}
    for image in plan.images:
        derived[image.id] = derive_image(plan, image, paths, ports, derived)
    fresh = [one for one in derived.values() if one.present is None]

    # 3. The suites of all of them at once, in containers of exactly these bytes: most checks wait for something.
    examinations = run_together([partial(_check, one, ports) for one in fresh], ports.examiner.stop)

    # 4. What is said of each, the policies that can be asked now, and the record, last.
    outcomes = {
        one.image.id: finish_image(plan, one, examination, paths, ports)
        for one, examination in zip(fresh, examinations, strict=True)
    }
    return tuple(
        outcomes.get(one.image.id) or BuildOutcome(_present(one), made=False, durations={}) for one in derived.values()
    )


def derive_image(
    plan: Plan, image: PlannedImage, paths: Paths, ports: BuildPorts, derived: Mapping[str, Derived]
) -> Derived:
    """Derive and scan one image, or find that the same inputs were built before."""
    # 1. The same inputs and undamaged outputs: nothing to do.
    below = derived.get(image.base)
    inputs = digest_inputs(plan, image, below.made.manifest.digest if below else None, ports.revision)
    if (present := _unchanged(paths, image, inputs)) is not None:
        return present
    remove_tree(paths.built(image.id))

    # 2. The base, by digest.
    base = resolve_base(
        plan, image, paths, ports.sources, ports.registry, ports.source_registry, ports.reporter, _base_of(plan, below)
    )

    # 3. Its layers without what must not be published, the added ones, config and manifest.
    layout = Layout(paths.built(image.id) / "layout")
    made, reports = _derive(plan, image, base, layout, paths, ports)

    # 4. Every layer of the result is scanned.
    scan = ports.examiner.scan(image, layout, made.manifest, made.config)
    return Derived(image, base, made, layout, scan, inputs, reports, None)


def finish_image(plan: Plan, one: Derived, examination: Examination, paths: Paths, ports: BuildPorts) -> BuildOutcome:
    """SBOM, provenance, statements and verdicts, and the record when all of it passes."""
    assert one.base is not None, "only a fresh image is finished"
    assert one.scan is not None, "a fresh image was scanned"
    environment = ports.environment()
    built = Built(
        plan, one.image, one.base, one.made, one.layout, one.scan, examination, one.inputs, ports.revision, environment
    )
    documents = make_documents(built)
    files = {**documents.files, **one.reports}
    outputs = tuple(_write(paths, one.image, name, data) for name, data in sorted(files.items()))
    wrong = [*_failures(examination.report), *_rejections(documents.verdicts)]
    if wrong:
        raise _refusal(one.image, wrong, paths)
    record = _make_record(paths, one.image, one.base, one.made, one.inputs, outputs)
    write_atomic(paths.built(one.image.id) / RECORD_NAME, record.to_bytes())
    return BuildOutcome(record, made=True, durations=examination.durations)


def _present(one: Derived) -> BuiltImage:
    assert one.present is not None, "an image is fresh or present"
    return one.present


def _base_of(plan: Plan, below: Derived | None) -> Base | None:
    if below is None:
        return None
    reference = below.image.repository.with_digest(below.made.manifest.digest)
    if below.image.base_kind == "pinned":
        reference = load_reference(below.image.base, "release.yaml", pinned=True)
    names = tuple(layer.name for layer in below.made.layers)
    return Base(reference, below.made.manifest, below.made.config, below.layout, (), names, strips=False)


def _unchanged(paths: Paths, image: PlannedImage, inputs: str) -> Derived | None:
    if not has_record(paths.built(image.id)):
        return None
    try:
        record, layout = load_built(paths, image.id)
    except PipelineError:
        return None  # damaged or foreign: built again from nothing
    if record.inputs != inputs:
        return None
    manifest = load_manifest(layout, record.manifest_digest, record.manifest_media_type)
    made = Assembled(manifest, load_config(layout, record.config_digest), record.layers, ())
    return Derived(image, None, made, layout, None, inputs, {}, record)


def _derive(
    plan: Plan, image: PlannedImage, base: Base, layout: Layout, paths: Paths, ports: BuildPorts
) -> tuple[Assembled, dict[str, bytes]]:
    if image.base_kind == "pinned":
        return _take_over(base, layout), {}
    stripped = strip_base(plan, image, base, layout, paths.cache, ports)
    with ports.reporter.step(f"{image.id}: add layers"):
        added, materials = add_layers(plan, image, layout, ports.sources, stripped.repository)
        layers = (*stripped.layers, *added)
        made = assemble(plan, image, base, layers, (*base.materials, *materials), layout, ports.revision)
    return made, {"strip.json": stripped.report.to_bytes()}


def _take_over(base: Base, layout: Layout) -> Assembled:
    diff_ids = base.config.view.rootfs.diff_ids
    layers = tuple(
        LayerRecord(
            name=name,
            origin="base",
            digest=layer.digest,
            diff_id=diff_id,
            size=layer.size,
            media_type=layer.media_type,
        )
        for name, layer, diff_id in zip(base.layer_names, base.manifest.view.layers, diff_ids, strict=True)
    )
    for blob in (*base.manifest.view.layers, base.manifest.view.config):
        layout.link_from(base.layout, blob.digest)
    layout.write_bytes(base.manifest.raw)
    layout.write_index([base.manifest.descriptor])
    return Assembled(base.manifest, base.config, layers, base.materials)


def _check(one: Derived, ports: BuildPorts) -> Examination:
    with ports.reporter.step(f"{one.image.id}: load into the engine"):
        image_id = ports.engine.load(one.layout, one.made.manifest, f"build-{one.image.id}")
    try:
        return ports.examiner.check(one.image, one.made.manifest, one.made.config, image_id)
    finally:
        ports.engine.remove_image(image_id)


def _write(paths: Paths, image: PlannedImage, name: str, data: bytes) -> OutputFile:
    write_atomic(paths.built(image.id) / name, data)
    return OutputFile(path=name, digest=digest_of(data), size=len(data))


def _failures(checks: CheckReport) -> list[str]:
    if not checks.results:
        return ["no check ran: nothing is known of this image"]
    return [f"{result.id}: {result.outcome}: {result.statement}" for result in checks.failed]


def _rejections(verdicts: Sequence[Verdict]) -> list[str]:
    return [verdict.describe() for verdict in verdicts if verdict.outcome == "fail"]


def _refusal(image: PlannedImage, lines: Sequence[str], paths: Paths) -> VerificationError:
    shown = "\n".join(f"    {line}" for line in lines[:20])
    more = f"\n    and {len(lines) - 20} more" if len(lines) > 20 else ""
    return VerificationError(
        f"{image.id} was built and does not pass:\n{shown}{more}",
        where=str(paths.built(image.id)),
        remedy="checks.json and policies.json there say what was expected and what was seen",
    )


def _make_record(
    paths: Paths, image: PlannedImage, base: Base, made: Assembled, inputs: str, outputs: tuple[OutputFile, ...]
) -> BuiltImage:
    kept = {layer.digest for layer in base.manifest.view.layers}
    return BuiltImage(
        release=paths.release,
        target=paths.target,
        image=image.id,
        inputs=inputs,
        pinned=image.base_kind == "pinned",
        base=str(base.reference),
        repository=f"{image.repository.registry}/{image.repository.repository}",
        manifest_digest=made.manifest.digest,
        manifest_media_type=made.manifest.media_type,
        config_digest=made.config.digest,
        compressed_bytes=made.manifest.compressed_bytes,
        added_bytes=sum(layer.size for layer in made.layers if layer.digest not in kept),
        layers=made.layers,
        outputs=outputs,
    )
