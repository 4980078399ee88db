"""report.md: the verdict first, then what it rests on, each fact with the file that proves it."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.report.facts import ImageFacts, ReleaseFacts


def render_markdown(facts: ReleaseFacts) -> str:
    """The report as text; the same facts as report.html."""
    return "\n".join(_lines(facts)) + "\n"


def _lines(facts: ReleaseFacts) -> Iterator[str]:
    inputs = facts.inputs
    verdict = "passes" if facts.passed else "DOES NOT PASS"
    yield f"# Release {inputs.release} on {inputs.target_name} {verdict}"
    yield ""
    yield f"Signed by `{inputs.target.identity.subject}`, vouched for by `{inputs.target.identity.issuer}`."
    yield "Everything below is computed again by `nox -s review`, offline, from the raw files beside this one."
    yield from _images(facts)
    yield from _sizes(facts)
    yield from _checks(facts)
    yield from _policies(facts)
    yield from _states(facts)
    yield from _verification(facts)


def _images(facts: ReleaseFacts) -> Iterator[str]:
    yield from ("", "## Images", "")
    yield "| image | manifest digest | compressed bytes | checks before | checks after | leaks |"
    yield "| --- | --- | ---: | --- | --- | ---: |"
    for image in facts.images:
        agreement = image.agreement
        before = _count(agreement.before_passed, agreement.before_failed)
        after = _count(agreement.after_passed, agreement.after_failed)
        yield (
            f"| {image.id} | `{image.manifest.digest}` | {image.manifest.compressed_bytes:,} "
            f"| {before} | {after} | {len(image.scan.leaks)} |"
        )


def _sizes(facts: ReleaseFacts) -> Iterator[str]:
    sizes = facts.sizes
    yield from ("", "## Sizes", "")
    yield f"All images: {sizes.sum_bytes:,} bytes compressed; with shared layers counted once: {sizes.layers_once_bytes:,}."
    for pair in sizes.near_identical:
        yield f"Near-identical layers cost {pair.wasted_bytes:,} bytes: `{pair.first}` and `{pair.second}`."
    yield from ("", "| layer | bytes | in |", "| --- | ---: | --- |")
    for layer in sizes.layers:
        yield f"| `{layer.digest}` | {layer.size:,} | {', '.join(layer.images)} |"


def _checks(facts: ReleaseFacts) -> Iterator[str]:
    yield from ("", "## Checks", "")
    for image in facts.images:
        failed = image.checks.failed
        yield f"- **{image.id}**: {len(image.checks.results) - len(failed)} passed, {len(failed)} failed after the pull"
        yield from (f"  - `{result.id}` {result.outcome}: {result.statement}" for result in failed)
        yield from (f"  - `{d.check}` was {d.before} before, is {d.after}" for d in image.agreement.disagreements)


def _policies(facts: ReleaseFacts) -> Iterator[str]:
    yield from ("", "## Policies", "", "| policy | verdict | statement |", "| --- | --- | --- |")
    statements = {policy.id: policy.statement for policy in facts.inputs.policies}
    for verdict in facts.verdicts:
        yield f"| {verdict.policy} | {verdict.outcome} | {statements[verdict.policy]} |"
    for verdict in facts.verdicts:
        yield from (f"- {verdict.policy}: {finding.what} ({finding.where})" for finding in verdict.findings)


def _states(facts: ReleaseFacts) -> Iterator[str]:
    yield from ("", "## What was done", "")
    yield from (f"- {name}: {value}" for name, value in facts.state.states.items())


def _verification(facts: ReleaseFacts) -> Iterator[str]:
    yield from ("", "## Verify it yourself", "")
    for image in facts.images:
        yield from _commands(facts, image)


def _commands(facts: ReleaseFacts, image: ImageFacts) -> Iterator[str]:
    identity = facts.inputs.target.identity
    options = (
        f"--certificate-identity {identity.subject} --certificate-oidc-issuer {identity.issuer} "
        "--trusted-root trusted_root.json"
    )
    yield from ("```sh", f"cosign verify {options} {image.pull.reference}")
    for predicate_type in sorted(found.predicate_type for found in image.attestations.values()):
        yield f"cosign verify-attestation --type {predicate_type} {options} {image.pull.reference}"
    yield "```"


def _count(passed: int, failed: int) -> str:
    return f"{passed} passed" if not failed else f"{passed} passed, {failed} FAILED"
