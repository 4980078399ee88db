"""The records behind the verdict: packages and licences, policies, provenance inputs, proof of every layer's scan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from pipeline.checks.evaluate import Verdict
from pipeline.model.evidence import SnapshotPackage
from pipeline.model.finding import Finding
from pipeline.model.release import Policy
from pipeline.report.contents import Input, list_inputs, list_packages, list_parameters
from pipeline.report.facts import ImageFacts, ReleaseFacts
from pipeline.report.page_markup import (
    Column,
    Detail,
    Markup,
    code,
    element,
    fold,
    items,
    join,
    number,
    outcome,
    row,
    short,
    table,
    terms,
)
from pipeline.report.visible import as_json

SBOM_FILES = "images/*/sbom.cdx.json"
PROVENANCE_FILES = "images/*/attestations/provenance.sigstore.json"
MAX_FINDINGS = 30


def packages_part(facts: ReleaseFacts, detail: Detail) -> Markup:
    """Every component of the SBOMs with its licences and the images that have it, folded by ecosystem."""
    packages = list_packages(facts)
    unstated = sum(not package.licences for package in packages)
    text = f"{len(packages):,} components in all images; {unstated:,} state no licence. In full: {SBOM_FILES}."
    groups = groupby(packages, key=lambda package: package.ecosystem)
    return join([element("p", text), *(_packages(name, list(group), detail) for name, group in groups)])


def _packages(ecosystem: str, listed: Sequence[SnapshotPackage], detail: Detail) -> Markup:
    columns = [Column("package"), Column("version"), Column("licences"), Column("in images", "names")]
    rows = (
        row(
            short(package.name, detail, SBOM_FILES),
            short(package.version, detail, SBOM_FILES),
            short("; ".join(package.licences) or "(states none)", detail, SBOM_FILES),
            ", ".join(package.images),
        )
        for package in listed
    )
    body = table(f"Components and licences: {ecosystem}", columns, rows, detail, SBOM_FILES, "packages stack")
    return fold(short(f"{ecosystem}: {len(listed):,}", detail, SBOM_FILES), body)


def policies_part(facts: ReleaseFacts, detail: Detail) -> Markup:
    """Every policy with its rationale, and below, what was found and what is excepted."""
    policies = {policy.id: policy for policy in facts.inputs.policies}
    columns = [
        Column("policy"),
        Column("verdict"),
        Column("statement and rationale"),
        Column("severity"),
        Column("check"),
    ]
    rows = (_policy_row(policies[verdict.policy], verdict, detail) for verdict in facts.verdicts)
    return join(
        [
            table("What every policy says", columns, rows, detail, "policies.json", "policies stack"),
            *(_exceptions(policy, detail) for policy in facts.inputs.policies if policy.exceptions),
            *(_findings(verdict, detail) for verdict in facts.verdicts if verdict.findings),
        ]
    )


def _policy_row(policy: Policy, verdict: Verdict, detail: Detail) -> Markup:
    text = join(
        [
            short(policy.statement, detail, "inputs.json"),
            element("small", short(policy.rationale, detail, "inputs.json")),
        ]
    )
    parameters = element("small", short(as_json(policy.parameters), detail, "inputs.json"))
    check = join([policy.check, parameters if policy.parameters else Markup("")])
    return row(policy.id, outcome(verdict.outcome), text, policy.severity, check)


def _exceptions(policy: Policy, detail: Detail) -> Markup:
    columns = [Column("image digest", "wide"), Column("owner"), Column("reason"), Column("expires")]
    rows = (
        row(
            code(each.digest), *(short(text, detail, "inputs.json") for text in (each.owner, each.reason, each.expires))
        )
        for each in policy.exceptions
    )
    return table(f"Exceptions to {policy.id}", columns, rows, detail, "inputs.json", "exceptions stack")


def _findings(verdict: Verdict, detail: Detail) -> Markup:
    notes = sum(finding.severity == "note" for finding in verdict.findings)
    problems = len(verdict.findings) - notes
    ordered = sorted(verdict.findings, key=lambda finding: finding.severity == "note")
    shown = [short(_describe(finding), detail, "policies.json") for finding in ordered[:MAX_FINDINGS]]
    more = len(ordered) - len(shown)
    rest = element("p", f"{more:,} more are in policies.json.", class_="cut") if more else Markup("")
    summary = f"{verdict.policy} found: {problems:,} to fix, {notes:,} to note"
    return fold(summary, items(shown), rest, is_open=verdict.outcome in ("fail", "warn"))


def _describe(finding: Finding) -> str:
    remedy = f"; {finding.remedy}" if finding.remedy else ""
    return f"{finding.severity}: {finding.what} ({finding.where}){remedy}"


def provenance_part(facts: ReleaseFacts, detail: Detail) -> Markup:
    """Parameters of each build, then every resolved input by kind."""
    inputs = list_inputs(facts)
    groups = [(kind, list(group)) for kind, group in groupby(inputs, key=lambda each: each.kind)]
    return join(
        [
            element("p", f"{len(inputs):,} inputs in all images. In full: {PROVENANCE_FILES}."),
            *(_parameters(image, detail) for image in facts.images),
            *(_inputs(kind, listed, detail) for kind, listed in groups),
        ]
    )


def _parameters(image: ImageFacts, detail: Detail) -> Markup:
    where = f"images/{image.id}/attestations/provenance.sigstore.json"
    pairs = ((name, short(_plain(value), detail, where)) for name, value in list_parameters(image))
    return fold(f"{image.id}: how it was built", terms(pairs))


def _plain(value: object) -> str:
    return value if isinstance(value, str) else as_json(value)  # type: ignore[arg-type]


def _inputs(kind: str, listed: list[Input], detail: Detail) -> Markup:
    columns = [
        Column("input"),
        Column("version"),
        Column("from"),
        Column("digest", "wide"),
        Column("in images", "names"),
    ]
    rows = (
        row(
            short(each.name, detail, PROVENANCE_FILES),
            short(each.version, detail, PROVENANCE_FILES),
            short(each.uri, detail, PROVENANCE_FILES),
            code(short(" ".join(each.digests), detail, PROVENANCE_FILES)),
            ", ".join(each.images),
        )
        for each in listed
    )
    return fold(
        f"{kind}: {len(listed):,}", table(f"Inputs: {kind}", columns, rows, detail, PROVENANCE_FILES, "inputs stack")
    )


def scan_part(facts: ReleaseFacts, detail: Detail) -> Markup:
    """What was looked at in every layer of every image, and every leak."""
    return join(part for image in facts.images for part in _scan(image, detail))


def _scan(image: ImageFacts, detail: Detail) -> Iterator[Markup]:
    scan, where = image.scan, f"images/{image.id}/scan.json"
    commits = ", ".join(scan.base_commits) or "none"
    yield element("h3", image.id)
    yield element("p", f"{scan.scanner}, rules ", code(scan.rules), f", base commits: {commits}. In full: {where}.")
    titles = ("entries", "unpacked bytes", "archives", "git stores", "objects seen", "objects allowed", "leaks")
    columns = [Column("layer", "wide"), *(Column(title, "number") for title in titles)]
    rows = (
        row(
            code(layer.layer),
            *map(number, (layer.entries, layer.unpacked_bytes, layer.archives, layer.git_stores)),
            *map(number, (layer.objects_seen, layer.objects_allowed, layer.leaks)),
        )
        for layer in scan.layers
    )
    yield table(f"{image.id}: what the scan looked at", columns, rows, detail, where, "scan stack")
    if scan.leaks:
        yield _leaks(image, detail, where)


def _leaks(image: ImageFacts, detail: Detail, where: str) -> Markup:
    columns = [
        Column("path"),
        Column("what"),
        Column("in reach"),
        Column("how it was recognised"),
        Column("count", "number"),
    ]
    rows = (
        row(
            short(leak.path, detail, where),
            short(f"{leak.kind} {leak.label}".strip(), detail, where),
            leak.reach,
            short(leak.how, detail, where),
            number(max(leak.count, 1)),
        )
        for leak in image.scan.leaks
    )
    return table(f"{image.id}: leaks", columns, rows, detail, where, "leaks stack")
