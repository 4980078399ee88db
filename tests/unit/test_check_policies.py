"""Each policy of the repository accepts a good image and rejects each bad one, for the right reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from pipeline.checks.catalogue import CHECKS
from pipeline.checks.evaluate import Verdict, evaluate
from pipeline.checks.observations import ImageObservation, ScanFinding, ScanSummary, schema_digests
from pipeline.model.release import Policy
from tests.fakes.images import make_image
from tests.fakes.observed import (
    BASE,
    CONFIG,
    HISTORY,
    PROVENANCE,
    ROOT,
    attestations,
    definition,
    good_image,
    load_policies,
    policy,
    release,
    report,
    small_sbom,
    with_config,
    with_manifest,
)

OTHER = "sha256:" + "2" * 64
ON = date(2026, 10, 12)


def judge(name: str, *images: ImageObservation, stage: str = "verify", **parameters: Any) -> Verdict:
    """The verdict of one policy of the repository."""
    judged = policy(name)
    changed = Policy.model_validate({**judged.model_dump(), "parameters": {**judged.parameters, **parameters}})
    [verdict] = evaluate([changed], release(*images, stage=stage), ON)
    return verdict


def good(**changes: Any) -> ImageObservation:
    return replace(good_image(), **changes)


def test_every_policy_accepts_the_good_image() -> None:
    verdicts = evaluate(load_policies(), release(), ON)
    assert {verdict.policy: verdict.outcome for verdict in verdicts} == dict.fromkeys(sorted(CHECKS), "pass")


def test_every_check_has_a_policy_of_its_name() -> None:
    assert {each.id: each.check for each in load_policies()} == {name: name for name in CHECKS}


def leak(reach: str, kind: str, **changes: Any) -> ImageObservation:
    layers = tuple(layer.digest for layer in good_image().manifest.view.layers)
    found = (ScanFinding(reach, kind, "workspace/repo/.git/objects/pack/x.pack", layers[0]),)  # type: ignore[arg-type]
    return good(**{"scan": ScanSummary(found, True, layers), **changes})


def provenance(**definition_changes: Any) -> ImageObservation:
    changed = {**PROVENANCE, "buildDefinition": {**PROVENANCE["buildDefinition"], **definition_changes}}
    return good(provenance=changed)


def sbom(change: Callable[[dict[str, Any]], object]) -> ImageObservation:
    document = json.loads(small_sbom())
    change(document)
    return good(sbom=json.dumps(document).encode())


def openenv(document: dict[str, Any]) -> dict[str, Any]:
    [found] = [each for each in document["components"] if each["name"] == "openenv"]
    assert isinstance(found, dict)
    return found


def licensed(text: str) -> ImageObservation:
    return sbom(lambda document: openenv(document).update(licenses=[{"expression": text}]))


def failing_report(outcome: str) -> Any:
    whole = report(good_image().manifest.digest)
    first = whole.results[0].model_copy(update={"outcome": outcome, "observed": 2})
    return whole.model_copy(update={"results": (first, *whole.results[1:])})


def attested(**changes: Any) -> ImageObservation:
    first, *rest = attestations(good_image().manifest.digest)
    return good(attested=(replace(first, **changes), *rest))


LAYERS = json.loads(good_image().manifest.raw)["layers"]
DIGESTS = tuple(layer["digest"] for layer in LAYERS)
REJECTED: list[tuple[str, ImageObservation, str]] = [
    ("base-pinned", good(base_reference="ghcr.io/example/task:latest"), "a tag where a digest belongs"),
    ("base-pinned", good(base_reference="task"), "not an image reference"),
    ("base-pinned", good(base_digest=OTHER), "the base that was used"),
    ("base-pinned", with_config({"Labels": {"org.opencontainers.image.base.digest": OTHER}}), "the label says"),
    ("base-pinned", with_config({"Labels": {"org.opencontainers.image.base.digest": BASE}}), "no label names"),
    ("checks-agree", good(after=None), "no check report from after"),
    ("checks-agree", good(before=None), "no check report from before"),
    ("checks-agree", good(after=failing_report("fail")), "fail after the pull"),
    ("checks-agree", good(after=failing_report("error")), "error after the pull"),
    ("checks-agree", good(after=failing_report("pass")), "with other values"),
    ("checks-agree", good(after=report(OTHER)), "is about"),
    ("checks-agree", good(before=report(good_image().manifest.digest, 594)), "ran only once"),
    ("no-fixtures", leak("reachable", "fixture"), "fixture, reachable"),
    ("no-fixtures", leak("buried", "fixture"), "fixture, buried"),
    ("no-fixtures", leak("protected", "fixture", built=False), "fixture, protected"),
    ("no-fixtures", leak("buried", "unreadable"), "unreadable"),
    ("no-fixtures", good(scan=None), "was not scanned"),
    ("no-fixtures", good(scan=ScanSummary((), False, DIGESTS)), "not read everything"),
    ("no-future-history", good(scan=ScanSummary((), True, (LAYERS[0]["digest"],))), "did not read this layer"),
    ("no-future-history", leak("protected", "future"), "future, protected"),
    ("no-future-history", leak("reachable", "future", built=False), "future, reachable"),
    ("platform", with_config({}, architecture="arm64"), "linux/arm64"),
    ("platform", with_config({}, os="windows"), "windows/amd64"),
    ("platform", with_manifest(layers=[{**LAYERS[0], "mediaType": "x.tar+zstd"}]), "media type 'x.tar+zstd'"),
    ("platform", good(config=make_image([]).config), "not the one that the manifest names"),
    ("provenance-present", good(provenance=None), "no provenance"),
    ("provenance-present", provenance(buildType="https://example.org/other"), "unknown build type"),
    ("provenance-present", provenance(externalParameters={}), "no external parameters"),
    ("provenance-present", provenance(resolvedDependencies=[]), "0 resolved"),
    ("provenance-present", provenance(resolvedDependencies=[{"uri": "x"}]), "without a digest"),
    ("provenance-present", provenance(resolvedDependencies="x"), "0 resolved"),
    ("provenance-present", good(provenance={**PROVENANCE, "runDetails": 5}), "no builder"),
    ("provenance-present", good(attested=()), "0 provenance attestations"),
    ("provenance-present", provenance(externalParameters={"image": "another"}), "not the one that the build wrote"),
    ("runtime-config", with_config({"User": "1000"}), "User"),
    ("runtime-config", with_config({"User": None}), "User"),
    ("runtime-config", with_config({"WorkingDir": "/"}), "WorkingDir"),
    ("runtime-config", with_config({"Entrypoint": ["/init"]}), "Entrypoint"),
    ("runtime-config", with_config({"Cmd": None}), "nothing starts"),
    ("runtime-config", with_config({"Cmd": ["/bin/sh"]}), "the definition's"),
    ("runtime-config", with_config({"ExposedPorts": {"8000/tcp": {}, "22/tcp": {}}}), "ExposedPorts"),
    ("runtime-config", with_config({"StopSignal": None}), "StopSignal"),
    ("runtime-config", with_config({"Volumes": {"/data": {}}}), "Volumes"),
    ("runtime-config", with_config({"Labels": {}}), "image.source is missing"),
    ("sbom-valid", good(sbom=None), "no SBOM"),
    ("sbom-valid", good(sbom=b"{}"), "not a CycloneDX document"),
    ("sbom-valid", sbom(lambda document: document.update(odd=1)), "odd"),
    ("sbom-valid", sbom(lambda document: document["metadata"].pop("component")), "another manifest"),
    ("sbom-valid", sbom(lambda document: document.update(components=[])), "0 deb packages"),
    ("sbom-valid", sbom(lambda document: document["compositions"][0].update(aggregate="incomplete")), "incomplete"),
    ("sbom-valid", sbom(lambda document: document["components"][-1].update(properties=[
        {"name": "pipeline:ecosystem", "value": "deb"}])), "a layer that the image does not have"),
    ("schemas-equal", good(schemas={}), "nobody saw"),
    ("schemas-equal", good(schemas={**good_image().schemas, "action": OTHER}), "not the published"),
    ("signature-identity", good(attested=()), "0 attestations"),
    ("signature-identity", good(attested=good_image().attested * 2), "2 attestations"),
    ("signature-identity", attested(identity="https://example.org/another"), "signed by https://example.org/another"),
    ("signature-identity", attested(issuer="http://127.0.0.1/oidc"), "of http://127.0.0.1/oidc"),
    ("signature-identity", attested(subject_digest=OTHER), "is about"),
    ("signature-identity", attested(signed_at=""), "no signed time"),
    ("size-budget", with_manifest(layers=[{**LAYERS[0], "size": 2 << 30}]), "compressed bytes"),
    ("size-budget", with_manifest(layers=LAYERS[:1] * 129), "129 layers"),
    ("size-budget", with_manifest(layers=[]), "0 layers"),
    ("layers-shared", with_config({}, history=[HISTORY[1], HISTORY[1]]), "2 layers are called"),
    ("layers-shared", replace(with_config({}, history=[]), definition=definition("mimo")), "0 layers are called"),
    ("licence-allow-list", good(sbom=None), "no SBOM"),
    ("licence-allow-list", licensed("AGPL-3.0-only"), "denied licence: AGPL-3.0-only"),
    ("licence-allow-list", licensed("MIT AND SSPL-1.0"), "denied licence: SSPL-1.0"),
    ("licence-allow-list", licensed("AGPL-3.0-only OR (MIT AND SSPL-1.0)"), "denied licence: AGPL-3.0-only, SSPL-1.0"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "image", "why"), REJECTED)
def test_rejected(name: str, image: ImageObservation, why: str) -> None:
    verdict = judge(name, image)
    assert verdict.outcome == "fail"
    told = [f"{each.what} {each.where}" for each in verdict.findings if each.severity == "error"]
    assert any(why in text for text in told), told
    assert all(each.digest == image.manifest.digest for each in verdict.findings)


def test_every_policy_rejects_something() -> None:
    assert {name for name, _, _ in REJECTED} | {"no-secrets"} == set(CHECKS)


SECRET = "ghp_" + "a1B2c3D4" * 5
RANDOM = "Zk3qX8vLr1TnB6wYc9HsJ2mPd5Gf7Ke0"


@pytest.mark.parametrize(
    ("image", "where"),
    [
        (with_config({"Env": ["API_TOKEN=hello"]}), "Env API_TOKEN"),
        (with_config({"Env": ["DB_PASSWORD='hello'"]}), "Env DB_PASSWORD"),
        (with_config({"Env": ["SigningKey2=1", "secret_key_3=hello"]}), "Env secret_key_3"),
        (with_config({"Env": [f"NOTE={SECRET}"]}), "Env NOTE"),
        (with_config({"Env": [f"NOTE={RANDOM}"]}), "Env NOTE"),
        (with_config({"Env": ["INDEX=https://user:hello@example.org/simple"]}), "Env INDEX"),
        (with_config({"Env": ["NOTE=-----BEGIN OPENSSH PRIVATE KEY-----"]}), "Env NOTE"),
        (with_config({"Labels": {**CONFIG["Labels"], "build.auth": "hello"}}), "Labels build.auth"),
        (with_config({"Cmd": ["/server", "--token-file", RANDOM]}), "Cmd"),
        (with_config({}, history=[{"created_by": "RUN |1 NPM_TOKEN=hello /bin/sh -c npm ci"}]), "history 0 NPM_TOKEN"),
        (with_config({}, history=[{"created_by": "RUN tool --password hello push"}]), "history 0 password"),
        (with_config({}, history=[{"comment": f"curl -H {SECRET}"}]), "history 0"),
        (with_manifest(annotations={"registry.password": "hello"}), "annotation registry.password"),
        (with_manifest(layers=[{**LAYERS[0], "annotations": {"note": RANDOM}}]), "annotation note"),
    ],
)
def test_no_secrets_rejects_and_never_tells(image: ImageObservation, where: str) -> None:
    verdict = judge("no-secrets", image)
    assert verdict.outcome == "fail"
    assert any(each.where.endswith(where) for each in verdict.findings), verdict.findings
    told = verdict.to_bytes().decode()
    assert not [secret for secret in ("hello", SECRET, RANDOM) if secret in told]


@pytest.mark.parametrize(
    "image",
    [
        with_config({"Env": ["GPG_KEY=A035C8C19219BA821ECEA86B64E628F8D684696D", "PYTHON_SHA256=" + "ab" * 32]}),
        with_config({"Env": ["TOKENIZERS_PARALLELISM=false", "MONKEY=banana", "AUTHOR=Somebody", "AUTH_TOKEN="]}),
        with_config({"Env": ["PYTHONPATH=/usr/lib/python3/dist-packages:/opt/Conda2/envs/py311/lib/Site-Packages"]}),
        with_config({}, history=[{"created_by": 'RUN export TOKEN="$TOKEN" && pip install numpy==2.1.0'}]),
        with_config({}, history=[{"created_by": "COPY sha256:" + "0a" * 32 + " in /x86_64-linux-gnu/Lib_2.so"}]),
    ],
)
def test_no_secrets_accepts(image: ImageObservation) -> None:
    assert judge("no-secrets", image).findings == ()


@pytest.mark.timeout(20)
def test_no_secrets_is_quick_on_hostile_text() -> None:
    text = ("a" * 200_000) + ("-----BEGIN " * 20_000) + ("eyJ" * 60_000) + ("http://a:" * 20_000)
    assert judge("no-secrets", with_config({}, history=[{"created_by": text}])).outcome == "pass"


def test_buried_in_a_pinned_base_is_reported_unless_the_policy_refuses_it() -> None:
    pinned = leak("buried", "future", built=False)
    verdict = judge("no-future-history", pinned)
    assert (verdict.outcome, [each.severity for each in verdict.findings]) == ("pass", ["note"])
    assert judge("no-future-history", pinned, pinned_buried="refuse").outcome == "fail"
    assert judge("no-fixtures", leak("reachable", "unrelated")).findings == ()


def test_checks_agree_wants_the_minimum_of_the_suite() -> None:
    short = report(good_image().manifest.digest, 594)
    verdict = judge("checks-agree", good(before=short, after=short))
    assert [each.what for each in verdict.findings] == [
        "594 checks before publication; at least 595 are due",
        "594 checks after the pull; at least 595 are due",
    ]
    assert "no minimum for the suite" in judge("checks-agree", good(), minimum={"repair": 1}).findings[0].what


def test_schemas_must_be_equal_among_images_even_beyond_the_published_ones() -> None:
    other = good(id="other", schemas={**good_image().schemas, "state": OTHER})
    assert [each.what for each in judge("schemas-equal", good(), other).findings] == ["differs from software"]


def test_the_expected_schemas_are_the_published_ones() -> None:
    published = json.loads((ROOT / "policies" / "openenv-schema.json").read_bytes())
    assert policy("schemas-equal").parameters["expected"] == schema_digests(published)


def test_a_runtime_layer_with_another_digest_is_rejected() -> None:
    other = with_manifest(layers=[LAYERS[0], {**LAYERS[1], "digest": OTHER}])
    assert judge("layers-shared", good(), good()).outcome == "pass"
    verdict = judge("layers-shared", good(), other)
    assert [each.digest for each in verdict.findings] == [other.manifest.digest]


def test_provenance_needs_no_attestation_before_publication() -> None:
    assert judge("provenance-present", good(attested=()), stage="build").outcome == "pass"


def test_sbom_of_more_bytes_than_a_log_takes() -> None:
    assert "a log takes 10" in judge("sbom-valid", good(), max_bytes=10).findings[0].what


def test_licences_of_which_one_may_be_chosen_and_ones_that_nobody_lists() -> None:
    assert judge("licence-allow-list", licensed("MIT OR AGPL-3.0-only")).outcome == "pass"
    odd = judge("licence-allow-list", licensed("LicenseRef-Odd"))
    assert odd.outcome == "pass"
    assert "a licence in neither list: LicenseRef-Odd" in [each.what for each in odd.findings]
    assert judge("licence-allow-list", licensed("LicenseRef-Odd"), other="refuse").outcome == "fail"
    assert judge("licence-allow-list", good(), unstated="refuse").outcome == "fail"


def test_a_component_that_a_person_accepted() -> None:
    denied = licensed("AGPL-3.0-only")
    name = openenv(json.loads(denied.sbom or b""))["purl"].partition("@")[0]
    accepted = [{"component": name, "owner": "maintainers", "reason": "read"}]
    assert judge("licence-allow-list", denied, accepted=accepted).outcome == "pass"
    unused = judge("licence-allow-list", good(), accepted=accepted)
    assert (unused.outcome, unused.findings[-1].what) == ("fail", "an acceptance that no component needs")
