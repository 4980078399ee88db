"""in-toto statements: their exact bytes, their order, their limits, and what reading one refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.derive import statements
from pipeline.errors import HostileInputError, IntegrityError
from pipeline.model import attestation
from pipeline.model.attestation import ResourceDescriptor, sha256_descriptor
from pipeline.model.finding import CheckResult
from pipeline.model.material import Material
from pipeline.model.reference import load_reference

GOLDEN = Path(__file__).parents[1] / "golden" / "statements"
DOCUMENT = Path(__file__).parents[2] / "docs" / "build-type.md"
DIGEST = "sha256:" + "ab" * 32
IMAGE = load_reference(f"127.0.0.1:5710/releases/software@{DIGEST}", "test")
BASE = sha256_descriptor("sha256:" + "01" * 32, uri="pkg:oci/base", name="base")
WHEEL = Material(
    uri="pkg:pypi/openenv@0.10.0",
    name="openenv",
    version="0.10.0",
    kind="wheel",
    digests={"sha256": "02" * 32},
    file_name="openenv-0.10.0-py3-none-any.whl",
)
LAYER = attestation.ScannedLayer(
    digest="sha256:" + "03" * 32,
    entries=10,
    unpacked_bytes=4096,
    archives=1,
    git_stores=1,
    git_objects=5,
    git_objects_allowed=5,
    findings=0,
)
POLICY = sha256_descriptor("sha256:" + "04" * 32, uri="https://policy.test/policies")
SCANNER = sha256_descriptor("sha256:" + "05" * 32, name="scanner")
RULES = sha256_descriptor("sha256:" + "06" * 32, name="rules")


def result(name: str, outcome: Any = "pass") -> CheckResult:
    return CheckResult(id=name, statement="holds", expected=1, observed=1, outcome=outcome)


def provenance(*dependencies: ResourceDescriptor) -> bytes:
    return statements.make_provenance_statement(
        IMAGE,
        external={"image": "software", "release": "2026-10-12"},
        internal={"compressor": "libdeflate-9"},
        dependencies=dependencies or (BASE, statements.describe_material(WHEEL)),
        builder_id="https://builder.test",
        inputs="sha256:" + "07" * 32,
    )


def made() -> dict[str, bytes]:
    """One statement of each kind."""
    bom = b'{"specVersion":"1.6","bomFormat":"CycloneDX","components":[{"name":"\xc3\xa9"}]}'
    return {
        "signature": statements.make_sign_statement(IMAGE),
        "provenance": provenance(),
        "sbom": statements.make_bom_statement(IMAGE, bom),
        "scan": statements.make_scan_statement(IMAGE, [LAYER], scanner=SCANNER, rules=RULES),
        "checks": statements.make_test_statement(IMAGE, [result("b"), result("a"), result("c", "fail")], [BASE]),
        "summary": statements.make_summary_statement(
            IMAGE, passed=True, verifier_id="https://verifier.test", policy=POLICY, inputs=[RULES, BASE]
        ),
    }


def predicate(statement: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(statement)["predicate"]
    return found


@pytest.mark.parametrize("kind", attestation.PREDICATE_TYPES)
def test_the_exact_bytes(kind: str) -> None:
    assert made()[kind] == (GOLDEN / f"{kind}.json").read_bytes()


def test_every_kind_is_made_and_read_back() -> None:
    kinds = made()
    assert set(kinds) == set(attestation.PREDICATE_TYPES)
    for kind, statement in kinds.items():
        parsed = statements.load_statement(statement, "test")
        assert parsed.predicate_type == attestation.PREDICATE_TYPES[kind]  # type: ignore[index]
        assert parsed.subject_digest == DIGEST
        assert parsed.subject[0].name == "127.0.0.1:5710/releases/software"


def test_the_order_in_which_inputs_were_found_does_not_show() -> None:
    wheel = statements.describe_material(WHEEL)
    assert provenance(BASE, wheel) == provenance(wheel, BASE)
    backwards = statements.make_test_statement(IMAGE, [result("c", "fail"), result("a"), result("b")], [BASE])
    assert backwards == made()["checks"]


def test_our_own_types_are_documented() -> None:
    text = DOCUMENT.read_text()
    for uri in (attestation.BUILD_TYPE, attestation.SCAN_RESULT):
        anchor = uri.partition("#")[2]
        assert uri.partition("#")[0].endswith("docs/build-type.md")
        assert f'<a id="{anchor}"></a>' in text
        assert uri in text


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [(["pass"], "PASSED"), (["pass", "fail"], "FAILED"), (["pass", "error"], "FAILED"), ([], "FAILED")],
)
def test_a_check_that_did_not_pass_failed_and_none_is_not_enough(outcomes: list[str], verdict: str) -> None:
    results = [result(str(number), outcome) for number, outcome in enumerate(outcomes)]
    assert predicate(statements.make_test_statement(IMAGE, results, []))["result"] == verdict


def test_one_check_with_two_results_is_refused() -> None:
    with pytest.raises(IntegrityError):
        statements.make_test_statement(IMAGE, [result("a"), result("a", "fail")], [])


def test_a_scan_with_a_finding_or_without_layers_failed() -> None:
    found = LAYER.model_copy(update={"findings": 1})
    for layers in ([LAYER, found], []):
        statement = statements.make_scan_statement(IMAGE, layers, scanner=SCANNER, rules=RULES)
        assert predicate(statement)["result"] == "FAILED"


def test_a_failed_verification_has_no_level() -> None:
    statement = statements.make_summary_statement(
        IMAGE, passed=False, verifier_id="https://verifier.test", policy=POLICY, inputs=[]
    )
    assert (predicate(statement)["verificationResult"], predicate(statement)["verifiedLevels"]) == (
        "FAILED",
        ["FAILED"],
    )


def test_a_summary_names_its_policy_by_digest() -> None:
    with pytest.raises(IntegrityError):
        statements.make_summary_statement(
            IMAGE, passed=True, verifier_id="v", policy=ResourceDescriptor(uri="https://policy.test"), inputs=[]
        )


def test_a_statement_is_about_a_digest() -> None:
    with pytest.raises(IntegrityError):
        statements.make_sign_statement(load_reference("127.0.0.1:5710/releases/software:tag", "test"))


def test_a_statement_over_the_limit_is_refused() -> None:
    bom = json.dumps({"bomFormat": "CycloneDX", "x": "y" * attestation.MAX_STATEMENT_BYTES}).encode()
    with pytest.raises(HostileInputError) as caught:
        statements.make_bom_statement(IMAGE, bom)
    assert attestation.CYCLONEDX_BOM in caught.value.where


@pytest.mark.parametrize(
    "bom",
    [
        b"",
        b"[]",
        b"{}",
        b'{"bomFormat":"SPDX"}',
        b'{"bomFormat":"CycloneDX","x":NaN}',
        b'{"bomFormat":"CycloneDX","x":1,"x":2}',
        b'{"bomFormat":"CycloneDX","x":12345678901234567890}',
        b'{"bomFormat":"CycloneDX","x":' + b"[" * 100_000,
    ],
)
def test_what_is_no_bom_is_refused(bom: bytes) -> None:
    with pytest.raises(HostileInputError):
        statements.make_bom_statement(IMAGE, bom)


def changed(**fields: Any) -> bytes:
    document = {**json.loads(statements.make_sign_statement(IMAGE)), **fields}
    return json.dumps({key: value for key, value in document.items() if value is not None}).encode()


SUBJECT = json.loads(statements.make_sign_statement(IMAGE))["subject"][0]


@pytest.mark.parametrize(
    "statement",
    [
        b"",
        b"null",
        b"\xff",
        b"[" * 100_000,
        changed(_type="https://in-toto.io/Statement/v0.1"),
        changed(subject=[]),
        changed(subject=[SUBJECT, SUBJECT]),
        changed(subject=SUBJECT),
        changed(subject=[{**SUBJECT, "digest": {"sha256": "AB" * 32}}]),
        changed(subject=[{**SUBJECT, "digest": {"sha512": "ab" * 64}}]),
        changed(subject=[{**SUBJECT, "digest": {"sha256": "ab" * 32, "sha512": "ab" * 64}}]),
        changed(subject=[{"digest": SUBJECT["digest"]}]),
        changed(predicateType=None),
        changed(predicateType=1),
        changed(predicate=None),
        changed(predicate=[]),
        changed(extra=1),
        changed()[:-1] + b',"predicate":{"other":1}}',
    ],
)
def test_reading_refuses(statement: bytes) -> None:
    with pytest.raises(HostileInputError):
        statements.load_statement(statement, "test")


@given(st.binary(max_size=200))
def test_reading_any_bytes_gives_a_statement_or_a_refusal(data: bytes) -> None:
    try:
        statements.load_statement(data, "test")
    except HostileInputError:
        return
    raise AssertionError("no short random bytes are a statement")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text().filter(lambda key: key != "bomFormat"), json_values, max_size=4))
def test_a_bom_comes_back_as_it_went_in(document: dict[str, Any]) -> None:
    bom = {**document, "bomFormat": "CycloneDX"}
    try:
        statement = statements.make_bom_statement(IMAGE, json.dumps(bom).encode())
    except HostileInputError:  # lone surrogates have no canonical form
        assert "\\ud" in json.dumps(bom)
        return
    assert statements.load_statement(statement, "test").predicate == bom
