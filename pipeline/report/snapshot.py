"""The compact form of a release that two releases are compared by, and that previous.json keeps of the one before."""

from __future__ import annotations

from pipeline.model.digest import digest_of
from pipeline.model.evidence import Snapshot, SnapshotChecks, SnapshotImage, SnapshotLayer, SnapshotPolicy
from pipeline.model.record import canonical_json
from pipeline.report.contents import list_packages
from pipeline.report.facts import ImageFacts, ReleaseFacts


def take_snapshot(facts: ReleaseFacts) -> Snapshot:
    """Pure: the same facts give the same snapshot."""
    inputs, identity = facts.inputs, facts.inputs.target.identity
    return Snapshot(
        release=inputs.release,
        target=inputs.target_name,
        passed=facts.passed,
        identity=identity.subject,
        issuer=identity.issuer,
        images=tuple(_image(image) for image in facts.images),
        layers_once_bytes=facts.sizes.layers_once_bytes,
        layers=tuple(
            SnapshotLayer(digest=layer.digest, size=layer.size, images=layer.images) for layer in facts.sizes.layers
        ),
        packages=list_packages(facts),
        checks=tuple(_checks(image) for image in facts.images),
        policies=_policies(facts),
    )


def _image(image: ImageFacts) -> SnapshotImage:
    manifest = image.manifest
    return SnapshotImage(image=image.id, manifest_digest=manifest.digest, compressed_bytes=manifest.compressed_bytes)


def _checks(image: ImageFacts) -> SnapshotChecks:
    results = image.checks.results
    return SnapshotChecks(
        image=image.id,
        passed=tuple(sorted(result.id for result in results if result.outcome == "pass")),
        others={result.id: result.outcome for result in results if result.outcome != "pass"},
    )


def _policies(facts: ReleaseFacts) -> tuple[SnapshotPolicy, ...]:
    rules = {policy.id: digest_of(canonical_json(policy.model_dump(mode="json"))) for policy in facts.inputs.policies}
    return tuple(
        SnapshotPolicy(policy=verdict.policy, outcome=verdict.outcome, rule=rules[verdict.policy])
        for verdict in facts.verdicts
    )
