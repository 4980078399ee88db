"""Releases as facts, to be reported: of any size, with text from outside that is as hostile as a test wants."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import JsonValue

from pipeline.checks.evaluate import Verdict
from pipeline.model.attestation import PREDICATE_TYPES
from pipeline.model.digest import digest_of
from pipeline.model.evidence import Agreement, Disagreement, EvidenceInputs, ImageInput, Pull, PulledBlob, State
from pipeline.model.finding import CheckReport, CheckResult, Finding
from pipeline.model.oci import OCI_CONFIG, OCI_LAYER_GZIP, OCI_MANIFEST, ImageConfig, Manifest
from pipeline.model.release import Identity, Policy, PolicyException, Target
from pipeline.model.stages import AttestationKind
from pipeline.ports import Attested
from pipeline.report.facts import ImageFacts, ReleaseFacts
from pipeline.report.sizes import measure
from pipeline.scan.record import ImageScan, LayerProof, Leak
from tests.fakes.observed import definition

RULES = digest_of(b"rules")
AREAS = ("protocol", "shell", "grading", "isolation", "reset", "output", "cases", "identity")
WORDS = ("reset", "unknown task", "late frame", "symbolic link", "open file", "signal", "two episodes", "empty answer")
IDENTITY = Identity(
    subject="https://github.com/example/project/.github/workflows/release.yml@refs/heads/main",
    issuer="https://issuer.example.org",
)


def layer(name: str, size: int) -> tuple[str, int]:
    """A layer's digest and size in bytes."""
    return digest_of(name.encode()), size


DEBIAN, RUNTIME = layer("debian", 212_480_311), layer("runtime", 41_203_774)
REPOSITORY, SOFTWARE, RECORDS = layer("repository", 1_901_783), layer("software", 16_886), layer("records", 4_020)


def check(index: int, suite: str = "repair", outcome: str = "pass", text: str = "") -> CheckResult:
    """A check with a readable statement; `text` stands in statement and values."""
    area, word = AREAS[index % len(AREAS)], WORDS[index // 8 % len(WORDS)]
    expected: JsonValue = {"reply": "observation", "reward": 0.0, "text": text} if index % 3 == 0 else index % 5
    return CheckResult(
        id=f"{suite}.{area}.{word.replace(' ', '-')}-{index:04}",
        statement=f"{word}: the server answers as the contract says, case {index} {text}".strip(),
        expected=expected,
        observed=expected if outcome == "pass" else f"connection closed {text}",
        outcome=outcome,  # type: ignore[arg-type]
    )


def checks(count: int, suite: str = "repair", failing: int = 0, text: str = "") -> tuple[CheckResult, ...]:
    """`failing` of `count` fail."""
    made = [check(index, suite, "fail" if index < failing else "pass", text) for index in range(count)]
    return tuple(sorted(made, key=lambda result: result.id))


def component(name: str, version: str, ecosystem: str = "deb", *licences: str) -> dict[str, Any]:
    """A component of an SBOM."""
    return {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"pkg:{ecosystem}/debian/package@{version}",
        "bom-ref": f"{ecosystem}/{name}@{version}",
        "licenses": [{"license": {"name": licence}} for licence in licences],
    }


def components(count: int) -> list[dict[str, Any]]:
    """Distinct packages."""
    licences = ("MIT", "GPL-2.0-or-later", "BSD-3-Clause", "Apache-2.0 WITH LLVM-exception", "LGPL-2.1-only")
    ecosystems = ("deb", "deb", "deb", "pypi")
    return [
        component(
            f"lib{WORDS[i % 8].replace(' ', '')}-{i}", f"1.{i % 9}-{i}+deb12u1", ecosystems[i % 4], licences[i % 5]
        )
        for i in range(count)
    ]


def dependencies(count: int) -> list[dict[str, Any]]:
    """Resolved inputs of a provenance."""
    found: list[dict[str, Any]] = [
        {"uri": "oci://127.0.0.1:5710/bases/task", "name": "base", "digest": {"sha256": "1" * 64}}
    ]
    found += [
        {
            "uri": f"pkg:deb/debian/lib{index}@1.{index}?arch=amd64",
            "name": f"lib{index}_1.{index}_amd64.deb",
            "digest": {"sha256": digest_of(str(index).encode())[7:]},
            "annotations": {"kind": "deb", "version": f"1.{index}"},
        }
        for index in range(count)
    ]
    return found


def image(
    name: str,
    layers: Sequence[tuple[str, int]] = (DEBIAN, RUNTIME, REPOSITORY, RECORDS),
    results: tuple[CheckResult, ...] = (),
    packages: Sequence[Mapping[str, Any]] = (),
    inputs: Sequence[Mapping[str, Any]] = (),
    *,
    labels: Mapping[str, str] | None = None,
    leaks: tuple[Leak, ...] = (),
    disagreements: tuple[Disagreement, ...] = (),
    title: str = "",
) -> ImageFacts:
    """One image; its manifest and config are real documents over the layers."""
    config = _config(name, layers, labels or {})
    manifest = _manifest(layers, config)
    results = results or checks(24)
    failed = sum(result.outcome != "pass" for result in results)
    base = f"127.0.0.1:5710/bases/task@sha256:{'1' * 64}"
    asked = ImageInput(
        image=name,
        reference=f"127.0.0.1:5710/releases/{name}:2026-10-12",
        pinned=False,
        base=base,
        definition=definition().model_copy(update={"title": title or f"Environment {name}"}),
        task=None,
    )
    return ImageFacts(
        asked=asked,
        manifest=manifest,
        config=config,
        pull=_pull(name, manifest, config, layers),
        attestations=_attestations(manifest.digest, list(packages), list(inputs), base),
        scan=_scan(layers, leaks),
        checks=CheckReport(image=name, manifest_digest=manifest.digest, results=results),
        schema={},
        agreement=Agreement(
            image=name,
            before_passed=len(results) - failed,
            before_failed=failed,
            after_passed=len(results) - failed,
            after_failed=failed,
            disagreements=disagreements,
        ),
    )


def policy(name: str = "no-fixtures", text: str = "", exceptions: tuple[PolicyException, ...] = ()) -> Policy:
    """A policy that says `text`."""
    return Policy(
        id=name,
        statement=f"No layer holds {name}. {text}".strip(),
        rationale=f"What is in a lower layer is still shipped. {text}".strip(),
        severity="error",
        check=name,
        parameters={"refuse": ["reachable", "buried"]},
        exceptions=exceptions,
    )


def verdict(name: str = "no-fixtures", outcome: str = "pass", text: str = "") -> Verdict:
    """Of the policy of that name, with a finding unless it passes."""
    finding = Finding(check=name, what=f"a fixture {text}".strip(), where="/opt/arena/x", remedy="remove it")
    return Verdict(
        policy=name,
        check=name,
        outcome=outcome,  # type: ignore[arg-type]
        findings=() if outcome == "pass" else (finding,),
        exceptions=(),
    )


def release(*images: ImageFacts, date: str = "2026-10-12", **changes: Any) -> ReleaseFacts:
    """A release on the local target."""
    images = images or (image("software"),)
    policies: tuple[Policy, ...] = changes.pop("policies", (policy(),))
    verdicts = changes.pop("verdicts", tuple(verdict(each.id) for each in policies))
    target = Target(
        kind="embedded",
        registry="127.0.0.1:5710",
        repository="releases/{image}",
        identity=changes.pop("identity", IDENTITY),
        rekor=1,
        log_outage_budget_s=0,
    )
    inputs = EvidenceInputs(
        release=date,
        source="https://github.com/example/project",
        target_name="local",
        target=target,
        images=tuple(each.asked for each in images),
        policies=policies,
    )
    state = State(
        states={
            "publication": "done",
            "local checks": "done",
            "anonymous replay": "done",
            "admission": "not performed",
            "training": "not performed",
            "private evaluation": "not performed",
        }
    )
    sizes = measure({each.id: each.manifest for each in images})
    return replace(ReleaseFacts(inputs, images, sizes, verdicts, state), **changes)


def _config(name: str, layers: Sequence[tuple[str, int]], labels: Mapping[str, str]) -> ImageConfig:
    history = [{"created_by": "base: debian" if index == 0 else f"added: part {index}"} for index in range(len(layers))]
    document = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Labels": {"org.opencontainers.image.version": "2026-10-12", **labels}},
        "rootfs": {"type": "layers", "diff_ids": [digest for digest, _ in layers]},
        "history": history,
        "comment": name,
    }
    return ImageConfig(json.dumps(document).encode())


def _manifest(layers: Sequence[tuple[str, int]], config: ImageConfig) -> Manifest:
    document = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": {"mediaType": OCI_CONFIG, "digest": config.digest, "size": len(config.raw)},
        "layers": [{"mediaType": OCI_LAYER_GZIP, "digest": digest, "size": size} for digest, size in layers],
    }
    return Manifest(json.dumps(document).encode(), OCI_MANIFEST)


def _pull(name: str, manifest: Manifest, config: ImageConfig, layers: Sequence[tuple[str, int]]) -> Pull:
    blobs = [(config.digest, len(config.raw)), *layers]
    return Pull(
        reference=f"127.0.0.1:5710/releases/{name}@{manifest.digest}",
        tag_digest=manifest.digest,
        blobs=tuple(PulledBlob(digest=digest, size=size, received_bytes=size) for digest, size in blobs),
        engine_image_id=config.digest,
        person_pull_image_id=config.digest,
    )


def _attestations(
    digest: str, packages: list[Mapping[str, Any]], inputs: list[Mapping[str, Any]], base: str
) -> dict[AttestationKind, Attested]:
    predicates: dict[AttestationKind, dict[str, Any]] = {
        "sbom": {"bomFormat": "CycloneDX", "specVersion": "1.6", "components": packages},
        "provenance": {
            "buildDefinition": {
                "buildType": "https://example.org/build-type#layers-v1",
                "externalParameters": {"release": "2026-10-12"},
                "internalParameters": {"base": base, "epoch": 1_791_763_200},
                "resolvedDependencies": inputs,
            },
            "runDetails": {"builder": {"id": IDENTITY.subject}, "metadata": {"invocationId": digest}},
        },
    }
    return {
        kind: Attested(
            predicate_type=predicate_type,
            subject_digest=digest,
            predicate=predicates.get(kind, {}),
            signed_at="2026-10-12T08:00:00Z",
            identity=IDENTITY.subject,
            issuer=IDENTITY.issuer,
            bundle=b"{}",
        )
        for kind, predicate_type in PREDICATE_TYPES.items()
    }


def _scan(layers: Sequence[tuple[str, int]], leaks: tuple[Leak, ...]) -> ImageScan:
    return ImageScan(
        scanner="leak-scan/v1",
        rules=RULES,
        base_commits=("a" * 40,),
        layers=tuple(
            LayerProof(
                layer=digest,
                diff_id=digest,
                entries=size // 9_000,
                unpacked_bytes=size * 3,
                archives=2,
                git_stores=1,
                objects_seen=2_587,
                objects_allowed=2_587,
                leaks=sum(leak.layer == digest for leak in leaks),
            )
            for digest, size in layers
        ),
        leaks=leaks,
    )
