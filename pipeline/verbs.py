"""The verbs of the command line: each wires adapters to a stage, runs it, and prints one summary."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping

from pipeline import verbs_bench, verbs_documents, verbs_report, verbs_services, verbs_tools
from pipeline.plan import render_plan
from pipeline.report.summary import SummaryLine, render_summary
from pipeline.world import Settings, World

Verb = Callable[[argparse.Namespace, Settings], None]


def plan(options: argparse.Namespace, settings: Settings) -> None:
    """Print what a build would do; nothing is touched."""
    print(render_plan(_world(options, settings).plan))


def build(options: argparse.Namespace, settings: Settings) -> None:
    """Derive, strip, scan and check every image."""
    from pipeline.adapters.git import prove_clean
    from pipeline.stages.build import BuildPorts
    from pipeline.stages.build import build as run
    from pipeline.stages.records import load_checks

    started, world = time.monotonic(), _world(options, settings)
    with world.lock("build"):
        world.start_services()
        ports = BuildPorts(
            world.anonymous,
            world.credentialed if world.is_embedded else None,
            world.sources,
            world.engine,
            world.examiner,
            world.reporter,
            world.revision,
            world.environment,
            prove_clean,
            world.examine_vendored,
        )
        outcomes = run(world.plan, world.paths, ports)
        for outcome in outcomes:
            world.note_durations("build", outcome.record.image, outcome.durations)
        lines = [
            SummaryLine(
                outcome.record.image,
                outcome.record.manifest_digest,
                outcome.record.compressed_bytes,
                outcome.record.added_bytes,
                f"{len(load_checks(world.paths, outcome.record).results)} passed",
                "" if outcome.made else "unchanged: nothing to do",
            )
            for outcome in outcomes
        ]
    places = [f"images: {world.paths.state / 'build' / world.paths.release / world.paths.target}"]
    print(render_summary("build", lines, time.monotonic() - started, places))


def publish(options: argparse.Namespace, settings: Settings) -> None:
    """Push, sign, attest, read back, tag."""
    from pipeline.stages.publish import PublishPorts
    from pipeline.stages.publish import publish as run
    from pipeline.stages.records import load_built
    from pipeline.stages.release_manifest import find_place

    started, world = time.monotonic(), _world(options, settings)
    with world.lock("publish"):
        world.start_services()
        ports = PublishPorts(world.credentialed, world.signer, world.verifier, world.reporter, world.revision)
        published = run(world.plan, world.paths, ports)
        lines = []
        for record in published:
            built = load_built(world.paths, record.image)[0]
            note = f"{len(record.attestations)} attestations, tag {record.tag}"
            digest = built.manifest_digest
            lines.append(SummaryLine(record.image, digest, built.compressed_bytes, built.added_bytes, note))
    sent = f"sent {world.credentialed.sent_bytes:,} bytes to {world.plan.target.registry}"
    signed = f"signed release manifest: {find_place(world.plan)}"
    print(render_summary("publish", lines, time.monotonic() - started, [sent, signed]))


def verify(options: argparse.Namespace, settings: Settings) -> None:
    """Pull anonymously, verify everything, write the evidence; VerificationError when it does not pass."""
    from pipeline.errors import VerificationError
    from pipeline.report.facts import added_bytes
    from pipeline.stages.comparison import load_previous
    from pipeline.stages.evidence import known_digests, write_evidence
    from pipeline.stages.verify import VerifyPorts
    from pipeline.stages.verify import verify as run

    started, world = time.monotonic(), _world(options, settings)
    with world.lock("verify"):
        world.start_services()
        ports = VerifyPorts(world.anonymous, world.engine, world.verifier, world.fresh_examiner, world.reporter)
        previous = load_previous(world.paths, world.make_reviewer, world.reporter)
        seen = run(world.plan, world.paths, ports, known_digests(world.paths))
        for image in seen.images:
            world.note_durations("verify", image.image.id, image.examination.durations)
        facts = write_evidence(world.plan, world.paths, seen, world.trusted_root, previous)
    lines = [
        SummaryLine(
            image.id,
            image.manifest.digest,
            image.manifest.compressed_bytes,
            added_bytes(image),
            f"{image.agreement.after_passed} passed, {image.agreement.after_failed} failed",
        )
        for image in facts.images
    ]
    print(render_summary("verify", lines, time.monotonic() - started, [f"evidence: {world.paths.evidence}/report.md"]))
    if not facts.passed:
        raise VerificationError(
            "the release does not pass", where=f"{world.paths.evidence}/report.md", remedy="the report says what failed"
        )


def review(options: argparse.Namespace, settings: Settings) -> None:
    """Re-check an evidence folder offline: no network, no engine, no credential."""
    from pipeline.stages.review import review as run

    started, world = time.monotonic(), _world(options, settings)
    folder = options.folder or world.paths.evidence
    found = run(folder, world.plan.release.file.targets, world.make_reviewer, world.reporter)
    for image in found.facts.images:
        print(f"{image.id:26} {image.manifest.digest}  {image.agreement.after_passed} checks passed, before and after")
    print(f"\n{found.files} files and {found.bundles} bundles hold; review took {time.monotonic() - started:.1f} s")
    if found.facts.inputs.target.kind == "embedded":
        print("signed by the local target's private Sigstore: this proves the mechanics, not third-party trust")


def _world(options: argparse.Namespace, settings: Settings) -> World:
    return World(options.release, options.target, settings)


VERBS: Mapping[str, Verb] = {
    "plan": plan,
    "build": build,
    "publish": publish,
    "verify": verify,
    "review": review,
    "documents": verbs_documents.documents,
    "diagnose": verbs_documents.diagnose,
    "scan": verbs_tools.scan,
    "policies": verbs_tools.policies,
    "schemas": verbs_tools.schemas,
    "diff": verbs_report.diff,
    "bench": verbs_bench.bench,
    "up": verbs_services.up,
    "down": verbs_services.down,
    "status": verbs_services.status,
}
