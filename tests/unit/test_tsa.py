"""The timestamp authority, read by another implementation of RFC 3161 (rfc3161-client)."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat import asn1
from rfc3161_client import (
    TimestampRequestBuilder,
    VerificationError,
    VerifierBuilder,
    decode_timestamp_response,
)
from rfc3161_client.base import HashAlgorithm

from pipeline.embedded.sigstore import rfc3161
from pipeline.embedded.sigstore.keys import Keys, load_keys
from pipeline.embedded.sigstore.tsa import TimestampAuthority

NOW = datetime(2026, 12, 1, 8, 0, 0, 999999, tzinfo=UTC)
MESSAGE = b"a signature"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return load_keys(tmp_path_factory.mktemp("state"))


def verify(keys: Keys, answer: bytes, message: bytes = MESSAGE, nonce: int | None = None) -> None:
    builder = VerifierBuilder().tsa_certificate(keys.tsa.certificate).add_root_certificate(keys.tsa.parents[-1])
    if nonce is not None:
        builder = builder.nonce(nonce)
    builder.build().verify_message(decode_timestamp_response(answer), message)


@pytest.mark.parametrize("algorithm", [HashAlgorithm.SHA256, HashAlgorithm.SHA512])
@pytest.mark.parametrize("with_certificates", [True, False])
def test_a_timestamp_verifies(keys: Keys, algorithm: HashAlgorithm, with_certificates: bool) -> None:
    request = (
        TimestampRequestBuilder()
        .data(MESSAGE)
        .hash_algorithm(algorithm)
        .nonce(nonce=True)
        .cert_request(cert_request=with_certificates)
        .build()
    )
    answer = TimestampAuthority(keys.tsa).respond(request.as_bytes(), NOW)
    verify(keys, answer, nonce=request.nonce)
    parsed = decode_timestamp_response(answer)
    assert parsed.tst_info.gen_time == NOW.replace(microsecond=0)
    assert len(parsed.signed_data.certificates) == int(with_certificates)
    with pytest.raises(VerificationError):
        verify(keys, answer, b"another signature")


def test_serial_numbers_differ(keys: Keys) -> None:
    request = TimestampRequestBuilder().data(MESSAGE).build().as_bytes()
    answers = [TimestampAuthority(keys.tsa).respond(request, NOW) for _ in range(20)]
    assert len({decode_timestamp_response(answer).tst_info.serial_number for answer in answers}) == 20


def test_another_root_does_not_verify(keys: Keys, tmp_path: Path) -> None:
    request = TimestampRequestBuilder().data(MESSAGE).build().as_bytes()
    with pytest.raises(VerificationError):
        verify(load_keys(tmp_path), TimestampAuthority(keys.tsa).respond(request, NOW))


@pytest.mark.parametrize("query", [b"", b"\x30\x00", b"not DER", b"\x30\x82\xff\xff" + b"\0" * 64])
def test_a_malformed_request_is_rejected(keys: Keys, query: bytes) -> None:
    answer = asn1.decode_der(rfc3161.TimeStampResp, TimestampAuthority(keys.tsa).respond(query, NOW))
    assert (answer.status.status, answer.token) == (rfc3161.REJECTION, None)


@pytest.mark.parametrize(
    ("algorithm", "hashed"),
    [(rfc3161.SHA256, b"short"), (rfc3161.OID("1.3.14.3.2.26"), hashlib.sha1(MESSAGE).digest())],
    ids=["short", "sha1"],
)
def test_a_hash_that_is_not_of_its_algorithm_is_rejected(keys: Keys, algorithm: rfc3161.OID, hashed: bytes) -> None:
    imprint = rfc3161.MessageImprint(
        hash_algorithm=rfc3161.AlgorithmIdentifier(algorithm=algorithm), hashed_message=hashed
    )
    query = rfc3161.TimeStampReq(version=1, message_imprint=imprint, policy=None, nonce=None, wants_certificates=False)
    answer = TimestampAuthority(keys.tsa).respond(asn1.encode_der(query), NOW)
    assert asn1.decode_der(rfc3161.TimeStampResp, answer).status.status == rfc3161.REJECTION
