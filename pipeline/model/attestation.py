"""in-toto attestations: predicate types, the statement, and the predicates that the pipeline writes.

Specifications: https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md and resource_descriptor.md,
https://slsa.dev/spec/v1.0/provenance, https://slsa.dev/spec/v1.0/verification_summary,
https://github.com/in-toto/attestation/blob/main/spec/predicates/test-result.md; docs/build-type.md for our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field, JsonValue, StringConstraints
from pydantic.alias_generators import to_camel

from pipeline.model.digest import Digest, hex_of
from pipeline.model.record import Record
from pipeline.model.stages import AttestationKind

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"

COSIGN_SIGN = "https://sigstore.dev/cosign/sign/v1"
SLSA_PROVENANCE = "https://slsa.dev/provenance/v1"
CYCLONEDX_BOM = "https://cyclonedx.org/bom"
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
VERIFICATION_SUMMARY = "https://slsa.dev/verification_summary/v1"

_OWN = "https://github.com/akseljoonas/mimo-openenv-software/blob/main/docs/build-type.md"
BUILD_TYPE = f"{_OWN}#layers-v1"
SCAN_RESULT = f"{_OWN}#scan-v1"
RELEASE_MANIFEST = f"{_OWN}#release-v1"

# Every digest that is released carries exactly one attestation of each kind.
PREDICATE_TYPES: Mapping[AttestationKind, str] = {
    "signature": COSIGN_SIGN,
    "provenance": SLSA_PROVENANCE,
    "sbom": CYCLONEDX_BOM,
    "scan": SCAN_RESULT,
    "checks": TEST_RESULT,
    "summary": VERIFICATION_SUMMARY,
}

# A log refuses larger ones, and a verifier must be able to hold several in memory.
MAX_STATEMENT_BYTES = 16 << 20
MAX_SUBJECTS = 256
# The payload in base64, with room for the certificate, the log entry and the timestamp.
MAX_BUNDLE_BYTES = MAX_STATEMENT_BYTES * 4 // 3 + (1 << 20)


class Step(StrEnum):
    """What a verification of a bundle goes through, in order; an error's `where` is the first that does not hold."""

    BUNDLE = "step 1, bundle"
    ENVELOPE = "step 2, envelope"
    SIGNATURE = "step 3, signature"
    TIMESTAMP = "step 4, signed timestamp"
    CERTIFICATE = "step 5, certificate"
    IDENTITY = "step 6, identity"
    LOG = "step 7, log entry"
    STATEMENT = "step 8, statement"
    SUBJECT = "step 9, subject"
    PREDICATE = "step 10, predicate type"


TestVerdict = Literal["PASSED", "WARNED", "FAILED"]
Hexadecimal = Annotated[str, StringConstraints(pattern=r"^(?:[0-9a-f]{2})+$")]


class CamelRecord(Record):
    """A record whose fields are written in camelCase, as in-toto documents are."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    def to_json(self) -> dict[str, JsonValue]:
        """The document, without absent fields."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class ResourceDescriptor(CamelRecord):
    """Something that a build took in or made. Digests are lower-case hex by algorithm (`sha256`, `gitCommit`)."""

    uri: str | None = None
    name: str | None = None
    digest: dict[str, Hexadecimal] | None = None
    media_type: str | None = None
    annotations: dict[str, JsonValue] | None = None


class DigestSet(Record):
    """The one digest of a subject."""

    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Subject(Record):
    """An image: `name` is registry/repository, the digest is its manifest's."""

    name: str
    digest: DigestSet


class Statement(Record):
    """An in-toto statement v1. Strict, since it is only read after its signature holds."""

    statement_type: Literal["https://in-toto.io/Statement/v1"] = Field(alias="_type")
    subject: tuple[Subject, ...] = Field(strict=False, min_length=1, max_length=MAX_SUBJECTS)
    predicate_type: str = Field(alias="predicateType")
    predicate: dict[str, JsonValue]

    @property
    def subject_digest(self) -> str:
        """Of the first subject, in OCI form."""
        return self.subject_digests[0]

    @property
    def subject_digests(self) -> tuple[str, ...]:
        """Of all subjects, in OCI form and in their order."""
        return tuple("sha256:" + subject.digest.sha256 for subject in self.subject)


class BuildDefinition(CamelRecord):
    """SLSA provenance: what was asked for, and everything that it was made from."""

    build_type: str
    external_parameters: dict[str, JsonValue]
    internal_parameters: dict[str, JsonValue]
    resolved_dependencies: tuple[ResourceDescriptor, ...]


class Builder(CamelRecord):
    """SLSA provenance: who built."""

    id: str


class BuildMetadata(CamelRecord):
    """SLSA provenance: no times, so that the same inputs give the same bytes."""

    invocation_id: str


class RunDetails(CamelRecord):
    """SLSA provenance: about this run."""

    builder: Builder
    metadata: BuildMetadata


class Provenance(CamelRecord):
    """https://slsa.dev/provenance/v1."""

    build_definition: BuildDefinition
    run_details: RunDetails


class TestResult(CamelRecord):
    """https://in-toto.io/attestation/test-result/v0.1. Test names are sorted."""

    __test__ = False  # not a test class, whatever its name begins with

    result: TestVerdict
    configuration: tuple[ResourceDescriptor, ...]
    passed_tests: tuple[str, ...]
    warned_tests: tuple[str, ...] = ()
    failed_tests: tuple[str, ...]


class ScannedLayer(CamelRecord):
    """What a scan of one layer saw; sizes in bytes of the unpacked layer."""

    digest: Digest
    entries: int
    unpacked_bytes: int
    archives: int
    git_stores: int
    git_objects: int
    git_objects_allowed: int
    findings: int


class ScanResult(CamelRecord):
    """Our own scan predicate: nothing of the future and no fixture in any layer."""

    result: Literal["PASSED", "FAILED"]
    scanner: ResourceDescriptor
    rules: ResourceDescriptor
    layers: tuple[ScannedLayer, ...]


class Verifier(CamelRecord):
    """SLSA verification summary: who verified."""

    id: str


class VerificationSummary(CamelRecord):
    """https://slsa.dev/verification_summary/v1."""

    verifier: Verifier
    resource_uri: str
    policy: ResourceDescriptor
    input_attestations: tuple[ResourceDescriptor, ...]
    verification_result: Literal["PASSED", "FAILED"]
    verified_levels: tuple[str, ...]
    slsa_version: Literal["1.0"] = "1.0"


class ReleasedDigest(CamelRecord):
    """Release manifest: one image. `attestations` are its bundles, by kind; `repository` has the registry in it."""

    id: str
    repository: str
    tag: str
    digest: DigestSet
    attestations: tuple[ResourceDescriptor, ...]


class ReleaseManifest(CamelRecord):
    """Our own release predicate: all images of a dated release and everything that was attested of them."""

    release: str
    target: str
    source: str
    images: tuple[ReleasedDigest, ...]


def sha256_descriptor(digest: Digest, *, uri: str | None = None, name: str | None = None) -> ResourceDescriptor:
    """A descriptor of something with an OCI digest."""
    return ResourceDescriptor(uri=uri, name=name, digest={"sha256": hex_of(digest)})
