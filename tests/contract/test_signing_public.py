"""The public-good instance, by configuration only and offline: the copy of its trust that the library ships."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from pipeline.adapters.keyless import KeylessSigner, KeylessVerifier, PublicTrust, load_public_trust
from pipeline.derive import statements
from pipeline.embedded.sigstore import trust
from pipeline.embedded.sigstore.identity import PUBLISHER
from pipeline.errors import ConfigError, IntegrityError
from pipeline.model.attestation import Step
from tests.fakes.private_sigstore import DIGEST, IMAGE, SIGN, Party, running

TARGETS = yaml.safe_load((Path(__file__).parents[2] / "release.yaml").read_text())["targets"]
STATEMENT = statements.make_sign_statement(IMAGE)


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PublicTrust]:
    with pytest.MonkeyPatch.context() as patched:
        for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
            patched.setenv(name, str(tmp_path_factory.mktemp("home")))
        yield load_public_trust(offline=True)


@pytest.fixture(scope="module", params=[1, 2], ids=["rekor-v1", "rekor-v2"])
def party(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Party]:
    with running(tmp_path_factory.mktemp("sigstore"), request.param) as party:
        yield party


def test_production_signs_with_timestamps_and_the_first_log(public: PublicTrust) -> None:
    services = json.loads(public.trust_config)["signingConfig"]
    assert {log["majorApiVersion"] for log in services["rekorTlogUrls"]} == {1}
    assert services["tsaUrls"]


def test_the_signer_takes_the_public_configuration(public: PublicTrust) -> None:
    asked: list[str] = []

    def token() -> str:
        asked.append("token")
        return "not a token"  # so that nothing is ever sent

    with pytest.raises(IntegrityError) as caught:
        KeylessSigner(public.trust_config, token, 0).sign(STATEMENT)
    assert (caught.value.where, asked) == ("identity token", ["token"])


def test_a_log_that_the_instance_lacks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    with pytest.raises(ConfigError):
        load_public_trust(2, offline=True)


def test_the_private_instance_satisfies_no_target_but_its_own(public: PublicTrust, party: Party) -> None:
    production = TARGETS["ghcr"]["identity"]
    for subject in (PUBLISHER, production["subject"]):
        bundle = party.signer(subject).sign(STATEMENT)
        with pytest.raises(IntegrityError) as caught:
            KeylessVerifier(public.trusted_root, production["subject"], production["issuer"]).verify(
                bundle, subject_digest=DIGEST, predicate_type=SIGN
            )
        assert caught.value.where == Step.TIMESTAMP
        # Even with the private root in the place of production's, the issuer in the certificate gives it away.
        with pytest.raises(IntegrityError) as caught:
            party.verifier(production["subject"], production["issuer"]).verify(
                bundle, subject_digest=DIGEST, predicate_type=SIGN
            )
        assert caught.value.where == Step.IDENTITY


def test_the_local_target_expects_the_private_instance() -> None:
    identity = TARGETS["local"]["identity"]
    port = int(identity["issuer"].rpartition(":")[2].partition("/")[0])
    assert identity == {"subject": PUBLISHER, "issuer": trust.issuer_url(port)}
