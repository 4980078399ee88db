"""What the signer does when a service is down or refuses: it retries inside its budget and never tells a secret."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.adapters.keyless import AmbientToken, EmbeddedToken, KeylessSigner
from pipeline.derive import statements
from pipeline.embedded.sigstore import trust
from pipeline.errors import AccessError, ConfigError, IntegrityError, PipelineError, ServiceError
from tests.fakes.private_sigstore import DIGEST, IMAGE, SIGN, running
from tests.fakes.sigstore_gate import PATHS, FakeTime, Gate, gated

STATEMENT = statements.make_sign_statement(IMAGE)


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    with gated(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("status", [429, 500, 503])
def test_an_outage_that_ends_inside_the_budget(gate: Gate, path: str, status: int) -> None:
    time = FakeTime()
    gate.plan[path] = [status, status]
    bundle = gate.signer(10, time).sign(STATEMENT)
    assert time.pauses == [1, 2]
    assert gate.party.verifier().verify(bundle, subject_digest=DIGEST, predicate_type=SIGN)


@pytest.mark.parametrize(("path", "step"), PATHS.items())
def test_an_outage_that_outlasts_the_budget(gate: Gate, path: str, step: str) -> None:
    time = FakeTime()
    gate.plan[path] = [503] * 100
    with pytest.raises(ServiceError) as caught:
        gate.signer(2700, time).sign(STATEMENT)
    assert caught.value.where == step
    assert "503" in caught.value.what
    assert time.now_s <= 2700
    assert max(time.pauses) == 60
    assert 40 < len(time.pauses) < 60


@pytest.mark.parametrize("path", PATHS)
def test_no_budget_is_one_attempt(gate: Gate, path: str) -> None:
    time = FakeTime()
    gate.plan[path] = [503] * 100
    with pytest.raises(ServiceError):
        gate.signer(0, time).sign(STATEMENT)
    assert (gate.seen.count(path), time.pauses) == (1, [])


def test_nothing_is_logged_without_a_timestamp(gate: Gate) -> None:
    gate.plan["/api/v1/timestamp"] = [503] * 100
    with pytest.raises(ServiceError):
        gate.signer(5, FakeTime()).sign(STATEMENT)
    assert "/api/v1/log/entries" not in gate.seen


def test_a_log_whose_answer_was_lost_is_asked_with_another_key(gate: Gate) -> None:
    gate.plan["/api/v1/log/entries"] = [409]
    bundle = gate.signer(5, FakeTime()).sign(STATEMENT)
    assert gate.party.verifier().verify(bundle, subject_digest=DIGEST, predicate_type=SIGN)
    assert gate.seen.count("/api/v2/signingCert") == 2


@pytest.mark.parametrize(("path", "step"), PATHS.items())
@pytest.mark.parametrize(("status", "kind"), [(400, ServiceError), (401, AccessError), (403, AccessError)])
def test_a_refusal_is_not_retried(gate: Gate, path: str, step: str, status: int, kind: type[PipelineError]) -> None:
    time = FakeTime()
    gate.plan[path] = [status] * 100
    with pytest.raises(kind) as caught:
        gate.signer(2700, time).sign(STATEMENT)
    assert (caught.value.where, time.pauses) == (step, [])


@pytest.mark.parametrize("path", PATHS)
def test_a_redirect_is_not_followed(gate: Gate, path: str) -> None:
    gate.plan[path] = [307]
    with pytest.raises(PipelineError):
        gate.signer(0, FakeTime()).sign(STATEMENT)
    assert gate.seen[-1] == path


def test_nothing_listens(gate: Gate) -> None:
    with running(gate.party.state_path.with_name("gone")) as gone:
        config, token = trust.trust_config(gone.state_path, gone.port), gate.party.token()
    with pytest.raises(ServiceError) as caught:
        KeylessSigner(config, token, 0).sign(STATEMENT)
    assert caught.value.where == "signing certificate"


def test_the_issuer_of_tokens_is_waited_for(gate: Gate) -> None:
    time, answers = FakeTime(), iter([ServiceError("down"), ServiceError("down")])

    def token() -> str:
        for failure in answers:
            raise failure
        return gate.party.token()()

    gate.signer(10, time, token).sign(STATEMENT)
    assert time.pauses == [1, 2]


@pytest.mark.parametrize("secret", ["not-a-token-but-secret", "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJzZWNyZXQifQ.c2VjcmV0"])
def test_a_token_is_never_told(gate: Gate, secret: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    with pytest.raises(IntegrityError) as caught:
        gate.signer(0, FakeTime(), lambda: secret).sign(STATEMENT)
    assert caught.value.where == "identity token"
    assert caught.value.__suppress_context__
    assert secret not in str(caught.value) + caplog.text


def test_a_refused_token_is_never_told(gate: Gate, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    with running(gate.party.state_path.with_name("foreign")) as foreign:
        token = foreign.token_of("https://local-sigstore.test/publisher")
    with pytest.raises(AccessError) as caught:
        gate.signer(0, FakeTime(), lambda: token).sign(STATEMENT)
    assert caught.value.where == "signing certificate"
    assert caught.value.__cause__ is None
    assert token not in str(caught.value) + caplog.text


def test_a_wrong_request_token(gate: Gate, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("wrong-request-token")
    with pytest.raises(AccessError) as caught:
        EmbeddedToken(trust.ambient_url(gate.party.port), wrong)()
    assert "wrong-request-token" not in str(caught.value)


def test_a_missing_request_token(gate: Gate, tmp_path: Path) -> None:
    with pytest.raises(AccessError):
        EmbeddedToken(trust.ambient_url(gate.party.port), tmp_path / "absent")()


def test_no_ambient_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_ACTIONS", "CI", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(AccessError):
        AmbientToken()()


def test_an_ambient_identity_of_a_ci_system(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_URL", trust.ambient_url(gate.party.port) + "?api-version=2.0")
    secret = (gate.party.state_path / "request-token").read_text()
    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", secret)
    bundle = gate.signer(0, FakeTime(), AmbientToken()).sign(STATEMENT)
    assert gate.party.verifier().verify(bundle, subject_digest=DIGEST, predicate_type=SIGN)


def test_a_trust_configuration_without_timestamps(gate: Gate) -> None:
    config = json.loads(trust.trust_config(gate.party.state_path, gate.port))
    config["signingConfig"]["tsaUrls"] = []
    with pytest.raises(ConfigError):
        KeylessSigner(json.dumps(config).encode(), gate.party.token(), 0).sign(STATEMENT)
    assert gate.seen == []
