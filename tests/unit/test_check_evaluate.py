"""Policies as a set: empty or unknown is an error, exceptions expire and must be needed, not run is not passed."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from pipeline.checks.catalogue import CHECKS
from pipeline.checks.evaluate import Verdict, check_policies, evaluate, pending
from pipeline.checks.observations import ReleaseObservation
from pipeline.checks.table import policies_table
from pipeline.errors import ConfigError
from pipeline.model.release import Policy
from tests.fakes.observed import ROOT, good_image, load_policies, policy, release, with_config

ON = date(2026, 10, 12)
BAD = with_config({"User": "1000"})
OTHER = "sha256:" + "2" * 64


def changed(name: str, **changes: Any) -> Policy:
    return Policy.model_validate({**policy(name).model_dump(), **changes})


def excepted(digest: str, expires: str = "2026-12-31") -> Policy:
    exception = {"digest": digest, "owner": "maintainers", "reason": "a migration", "expires": expires}
    return changed("runtime-config", exceptions=(exception,))


def judge(judged: Policy, observation: ReleaseObservation) -> Verdict:
    [verdict] = evaluate([judged], observation, ON)
    return verdict


def test_an_empty_set_of_policies_or_images_passes_nothing() -> None:
    with pytest.raises(ConfigError, match="no policy at all"):
        evaluate([], release(), ON)
    with pytest.raises(ConfigError, match="no image"):
        evaluate(load_policies(), ReleaseObservation("verify", (), release().identity), ON)


@pytest.mark.parametrize(
    ("judged", "what", "remedy"),
    [
        (changed("platform", check="platfrom"), "unknown check 'platfrom'", "did you mean 'platform'?"),
        (changed("platform", check="zzz"), "unknown check 'zzz'", "known: base-pinned, checks-agree"),
        (changed("size-budget", parameters={"layers_max": 1}), "compressed_bytes_below: Field required", "known:"),
        (
            changed("size-budget", parameters={"compressed_bytes_below": 1, "layers_max": 1, "layer_max": 1}),
            "layer_max: Extra inputs",
            "did you mean 'layers_max'?",
        ),
        (changed("size-budget", parameters={"compressed_bytes_below": "1", "layers_max": 1}), "valid integer", "known"),
        (changed("licence-allow-list", parameters={"allow": ["a*b"]}), "allow.0", "known"),
    ],
)
def test_unknown_checks_and_wrong_parameters(judged: Policy, what: str, remedy: str) -> None:
    with pytest.raises(ConfigError) as caught:
        evaluate([policy("platform"), judged] if judged.id != "platform" else [judged], release(stage="build"), ON)
    assert what in caught.value.what
    assert remedy in caught.value.remedy
    assert caught.value.where == f"policies/{judged.id}.yaml"


def test_two_policies_of_one_id() -> None:
    with pytest.raises(ConfigError, match="two policies"):
        check_policies([policy("platform"), policy("platform")])


def test_severity_decides_between_fail_and_warn() -> None:
    assert judge(policy("runtime-config"), release(BAD)).outcome == "fail"
    assert judge(changed("runtime-config", severity="warning"), release(BAD)).outcome == "warn"
    assert judge(policy("runtime-config"), release(BAD)).describe().startswith("runtime-config: fail: '1000'; the")


def test_an_exception_covers_one_digest_until_its_date() -> None:
    verdict = judge(excepted(BAD.manifest.digest), release(BAD))
    assert (verdict.outcome, len(verdict.findings), len(verdict.exceptions)) == ("excepted", 1, 1)
    assert judge(excepted(BAD.manifest.digest, "2026-10-12"), release(BAD)).outcome == "excepted"
    other = with_config({"User": "1001"})
    assert judge(excepted(BAD.manifest.digest), release(BAD, other)).outcome == "fail"


def test_an_expired_exception_fails_even_a_warning() -> None:
    expired = excepted(BAD.manifest.digest, "2026-10-11")
    verdict = judge(expired, release(BAD))
    assert verdict.outcome == "fail"
    assert "expired on 2026-10-11; owner maintainers" in verdict.findings[-1].what
    assert verdict.exceptions == ()
    warning = Policy.model_validate({**expired.model_dump(), "severity": "warning"})
    assert judge(warning, release()).outcome == "fail"


def test_an_unused_exception_fails_once_all_images_are_seen() -> None:
    verdict = judge(excepted(OTHER), release())
    assert (verdict.outcome, verdict.findings[0].what.partition(";")[0]) == ("fail", "an exception that nothing needs")
    assert judge(excepted(OTHER), release(stage="build")).outcome == "pass"


def test_what_cannot_run_yet_has_no_verdict() -> None:
    verdicts = evaluate(load_policies(), release(stage="build"), ON)
    later = {"checks-agree", "signature-identity"}
    assert {verdict.policy for verdict in verdicts} == set(CHECKS) - later
    assert set(pending(load_policies(), "build")) == later
    assert pending(load_policies(), "verify") == ()


def test_a_verdict_survives_its_bytes() -> None:
    verdict = judge(excepted(BAD.manifest.digest), release(BAD))
    assert Verdict.load(verdict.to_bytes(), "verdict") == verdict


def test_the_table_says_what_each_policy_last_said() -> None:
    judged = [excepted(BAD.manifest.digest), policy("signature-identity"), policy("no-secrets")]
    text = policies_table(judged, evaluate(judged, release(BAD, stage="build"), ON))
    lines = text.splitlines()
    assert any(line.startswith("runtime-config") and "excepted" in line for line in lines)
    assert any(line.startswith("signature-identity") and "verify" in line and "not run" in line for line in lines)
    assert any(line.startswith("no-secrets") and "pass" in line for line in lines)
    assert "exception until 2026-12-31" in text
    assert f"at software@{BAD.manifest.digest}: User" in text
    assert good_image().id in text
    assert not text.endswith("\n")


def test_long_lists_are_cut_in_the_table() -> None:
    images = [with_config({"User": str(number)}) for number in range(9)]
    judged = policy("runtime-config")
    assert "and 4 more findings" in policies_table([judged], evaluate([judged], release(*images), ON))


def test_the_paper_lists_every_check_with_its_stage() -> None:
    rows = [
        line.split("|") for line in (ROOT / "docs" / "policies.md").read_text().splitlines() if line.startswith("| `")
    ]
    assert {row[1].strip(" `"): row[2].strip() for row in rows} == {name: each.when for name, each in CHECKS.items()}
