"""in-toto statements about an image, as canonical bytes: the same inputs give the same statement on every machine.

There is no clock in them. When something was signed is what the signed timestamp of its bundle says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import rfc8785
from pydantic import JsonValue

from pipeline.errors import HostileInputError, IntegrityError
from pipeline.model import attestation
from pipeline.model.attestation import ResourceDescriptor
from pipeline.model.digest import Digest, hex_of
from pipeline.model.finding import CheckResult
from pipeline.model.material import Material
from pipeline.model.record import canonical_json
from pipeline.model.reference import Reference

MAX_NAME_CHARS = 512


def make_sign_statement(image: Reference) -> bytes:
    """What `cosign sign` v3 signs. `image` has a digest: that of the manifest."""
    return _statement(image, attestation.COSIGN_SIGN, {})


def make_provenance_statement(
    image: Reference,
    *,
    external: Mapping[str, JsonValue],
    internal: Mapping[str, JsonValue],
    dependencies: Iterable[ResourceDescriptor],
    builder_id: str,
    inputs: Digest,
) -> bytes:
    """SLSA provenance v1 of build type docs/build-type.md; `inputs`, the digest of all inputs, names the invocation."""
    definition = attestation.BuildDefinition(
        build_type=attestation.BUILD_TYPE,
        external_parameters=dict(external),
        internal_parameters=dict(internal),
        resolved_dependencies=_sorted(dependencies),
    )
    details = attestation.RunDetails(
        builder=attestation.Builder(id=builder_id), metadata=attestation.BuildMetadata(invocation_id=inputs)
    )
    provenance = attestation.Provenance(build_definition=definition, run_details=details)
    return _statement(image, attestation.SLSA_PROVENANCE, provenance.to_json())


def make_bom_statement(image: Reference, bom: bytes) -> bytes:
    """A CycloneDX document (JSON bytes) as the predicate; HostileInputError when it is not a JSON object."""
    try:
        document = load_json(bom)
    except (ValueError, RecursionError) as error:
        raise HostileInputError("the SBOM is not JSON", where=str(image)) from error
    if not isinstance(document, dict) or document.get("bomFormat") != "CycloneDX":
        raise HostileInputError("the SBOM is not a CycloneDX document", where=str(image))
    return _statement(image, attestation.CYCLONEDX_BOM, document)


def make_test_statement(
    image: Reference, results: Iterable[CheckResult], configuration: Iterable[ResourceDescriptor]
) -> bytes:
    """in-toto test result over check results; a check that could not run counts as failed."""
    seen = tuple(results)
    passed = sorted(result.id for result in seen if result.outcome == "pass")
    failed = sorted(result.id for result in seen if result.outcome != "pass")
    if len({*passed, *failed}) != len(seen):
        raise IntegrityError("two check results have one id", where=str(image))
    predicate = attestation.TestResult(
        result="FAILED" if failed or not passed else "PASSED",
        configuration=_sorted(configuration),
        passed_tests=tuple(passed),
        failed_tests=tuple(failed),
    )
    return _statement(image, attestation.TEST_RESULT, predicate.to_json())


def make_scan_statement(
    image: Reference,
    layers: Iterable[attestation.ScannedLayer],
    *,
    scanner: ResourceDescriptor,
    rules: ResourceDescriptor,
) -> bytes:
    """Our own predicate: what was looked at in every layer, bottom first, and that nothing was found."""
    seen = tuple(layers)
    clean = bool(seen) and not any(layer.findings for layer in seen)
    predicate = attestation.ScanResult(
        result="PASSED" if clean else "FAILED", scanner=scanner, rules=rules, layers=seen
    )
    return _statement(image, attestation.SCAN_RESULT, predicate.to_json())


def make_summary_statement(
    image: Reference,
    *,
    passed: bool,
    verifier_id: str,
    policy: ResourceDescriptor,
    inputs: Iterable[ResourceDescriptor],
    levels: Iterable[str] = ("SLSA_BUILD_LEVEL_1",),
) -> bytes:
    """SLSA verification summary. `policy` has uri and digest, `inputs` are the attestations that were verified."""
    if policy.uri is None or not policy.digest:
        raise IntegrityError("a verification summary names its policy by URI and digest", where=str(image))
    predicate = attestation.VerificationSummary(
        verifier=attestation.Verifier(id=verifier_id),
        resource_uri=resource_uri(image),
        policy=policy,
        input_attestations=_sorted(inputs),
        verification_result="PASSED" if passed else "FAILED",
        verified_levels=tuple(levels) if passed else ("FAILED",),
    )
    return _statement(image, attestation.VERIFICATION_SUMMARY, predicate.to_json())


def describe_material(material: Material) -> ResourceDescriptor:
    """A resolved input of a build as provenance lists it."""
    return ResourceDescriptor(
        uri=material.uri,
        name=material.file_name or material.name,
        digest=dict(material.digests),
        annotations={"kind": material.kind, "version": material.version},
    )


def resource_uri(image: Reference) -> str:
    """The image as a package URL (purl-spec, type oci)."""
    name = image.repository.rpartition("/")[2]
    version = (image.digest or "").replace(":", "%3A")
    return f"pkg:oci/{name}@{version}?repository_url={image.registry}/{image.repository}"


def load_statement(payload: bytes, where: str) -> attestation.Statement:
    """Parse a statement that is about exactly one subject; HostileInputError otherwise."""
    statement = load_joint_statement(payload, where)
    if len(statement.subject) != 1:
        raise HostileInputError(f"a statement about {len(statement.subject)} subjects instead of one", where=where)
    return statement


def load_joint_statement(payload: bytes, where: str) -> attestation.Statement:
    """Parse a statement that may be about several subjects; HostileInputError when it is none."""
    check_size(payload, where)
    try:
        return attestation.Statement.model_validate(load_json(payload))
    except (ValueError, RecursionError) as error:
        raise HostileInputError("not an in-toto statement v1 about images", where=where) from error


def load_json(raw: bytes) -> JsonValue:
    """Parse JSON in which no key occurs twice and no number is not one: ValueError (or RecursionError) otherwise.

    Two readers of one signed document must not see two different things.
    """
    value: JsonValue = json.loads(raw, object_pairs_hook=_unique, parse_constant=_refuse)
    return value


def check_size(statement: bytes, where: str) -> None:
    """HostileInputError above MAX_STATEMENT_BYTES."""
    if len(statement) > attestation.MAX_STATEMENT_BYTES:
        raise HostileInputError(
            f"a statement of {len(statement)} bytes; the limit is {attestation.MAX_STATEMENT_BYTES}",
            where=where,
            remedy="attest the digest of the document instead of the document",
        )


def _statement(image: Reference, predicate_type: str, predicate: Mapping[str, JsonValue]) -> bytes:
    name = f"{image.registry}/{image.repository}"
    if image.digest is None:
        raise IntegrityError("a statement is about a digest", where=str(image), remedy="pin the reference")
    if len(name) > MAX_NAME_CHARS:
        raise HostileInputError(f"a subject name of {len(name)} characters; the limit is {MAX_NAME_CHARS}")
    subject: dict[str, JsonValue] = {"name": name, "digest": {"sha256": hex_of(image.digest)}}
    document: dict[str, JsonValue] = {
        "_type": attestation.STATEMENT_TYPE,
        "subject": [subject],
        "predicateType": predicate_type,
        "predicate": dict(predicate),
    }
    try:
        statement = canonical_json(document)
    except (rfc8785.CanonicalizationError, RecursionError) as error:
        raise HostileInputError("the predicate has no canonical JSON form", where=predicate_type) from error
    check_size(statement, f"{predicate_type} of {image}")
    return statement


def _unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _refuse(constant: str) -> JsonValue:
    raise ValueError(f"{constant} is not JSON")


def _sorted(resources: Iterable[ResourceDescriptor]) -> tuple[ResourceDescriptor, ...]:
    """By URI, name and content: the order in which inputs were found must not show."""
    return tuple(sorted(resources, key=lambda one: (one.uri or "", one.name or "", one.to_bytes())))
