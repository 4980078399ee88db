"""Why a release passes or not, and how somebody else checks a signature: what both reports say."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from pipeline.derive.release_manifest import release_reference
from pipeline.model.attestation import RELEASE_MANIFEST
from pipeline.model.digest import hex_of
from pipeline.model.evidence import RELEASE_BUNDLE
from pipeline.report.facts import ImageFacts, ReleaseFacts
from pipeline.report.visible import visible

PRIVATE_TRUST = (
    "Signed by the local target's private Sigstore: this proves the mechanics of signing, not third-party trust."
)

RELEASE_TEXT = "one signed manifest names every image and attestation; the digest of any image verifies it. It is in"


def headline(facts: ReleaseFacts) -> str:
    """The verdict in one line."""
    return (
        f"Release {facts.inputs.release} on {facts.inputs.target_name} {'passes' if facts.passed else 'DOES NOT PASS'}"
    )


def reasons(facts: ReleaseFacts) -> tuple[str, ...]:
    """What keeps the release from passing; empty when it passes."""
    return tuple(_reasons(facts))


def remarks(facts: ReleaseFacts) -> tuple[str, ...]:
    """What a reviewer should know of a release even when it passes."""
    return tuple(_remarks(facts))


def count_outcomes(passed: int, failed: int) -> str:
    """`657 passed`, with FAILED where some did."""
    return f"{passed:,} passed" if not failed else f"{passed:,} passed, {failed:,} FAILED"


def area_of(check: str) -> str:
    """`repair.protocol` of `repair.protocol.reset.unknown-task`; `other` where an id has no dot."""
    return ".".join(check.split(".")[:-1][:2]) or "other"


def cosign_commands(facts: ReleaseFacts, image: ImageFacts) -> tuple[str, ...]:
    """cosign 3 in the evidence folder: the signature, then every other attestation. Quoted for a shell."""
    options = _trust_options(facts)
    types = sorted(found.predicate_type for kind, found in image.attestations.items() if kind != "signature")
    commands = [["cosign", "verify", *options, image.pull.reference]]
    commands += [["cosign", "verify-attestation", "--type", each, *options, image.pull.reference] for each in types]
    return tuple(visible(shlex.join(command)) for command in commands)


def release_command(facts: ReleaseFacts) -> str:
    """cosign 3 in the evidence folder: that the signed release manifest names the first image. Quoted for a shell."""
    command = ["cosign", "verify-blob-attestation", "--type", RELEASE_MANIFEST, "--bundle", RELEASE_BUNDLE]
    command += [*_trust_options(facts), "--digest", hex_of(facts.images[0].manifest.digest), "--digestAlg", "sha256"]
    return visible(shlex.join(command))


def release_place(facts: ReleaseFacts) -> str:
    """Where the registry has the signed release manifest."""
    return str(release_reference(facts.inputs.target, facts.inputs.release))


def _trust_options(facts: ReleaseFacts) -> list[str]:
    identity = facts.inputs.target.identity
    return [
        *("--certificate-identity", identity.subject, "--certificate-oidc-issuer", identity.issuer),
        *("--trusted-root", "trusted_root.json", "--use-signed-timestamps"),
    ]


def _reasons(facts: ReleaseFacts) -> Iterator[str]:
    for image in facts.images:
        if image.checks.failed:
            yield f"{image.id}: {_plural(len(image.checks.failed), 'check')} did not pass after the pull"
        if image.agreement.disagreements:
            count = _plural(len(image.agreement.disagreements), "difference")
            yield f"{image.id}: {count} between the run before publication and the run after the pull"
    yield from (f"policy {verdict.describe()}" for verdict in facts.verdicts if verdict.outcome == "fail")


def _remarks(facts: ReleaseFacts) -> Iterator[str]:
    if facts.inputs.target.kind == "embedded":
        yield PRIVATE_TRUST
    for verdict in facts.verdicts:
        if verdict.outcome == "warn":
            yield f"policy {verdict.describe()}"
        for each in verdict.exceptions:
            yield f"policy {verdict.policy}: excepted until {each.expires} by {each.owner}, for {each.digest}"
    for image in facts.images:
        if image.scan.leaks:
            yield f"{image.id}: the scan found {_plural(len(image.scan.leaks), 'leak')}, which policies judge"
    not_performed = [name for name, value in facts.state.states.items() if value == "not performed"]
    if not_performed:
        yield f"Not performed: {', '.join(not_performed)}."


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
