"""ports.BundleVerifier: whether a bundle says what is expected, by whom it should be said. Offline.

What must hold, in this order; IntegrityError's `where` is the first step that does not:

1. bundle: within the size limit, JSON without a key twice, media type v0.3.
2. envelope: DSSE, payload type in-toto, one signature.
3. signature: over the envelope, by the bundle's certificate.
4. signed timestamp: at least one, and each is over this signature and by an authority of the trusted root. The library
   does not insist on one where the log has a time of its own.
5. certificate: chains to the trusted root and was valid at the signed and the logged time; a promise of its log inside.
6. identity: exactly the expected subject, exactly the expected issuer.
7. log entry: one, with an inclusion proof under a signed checkpoint, and of this envelope.
8. statement: in-toto v1.
9. subject: the expected digests and no other.
10. predicate type: the expected one.

Steps 5 to 7 are the library's, in one call that also repeats 3 and 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pipeline.adapters.keyless.bundle import MAX_TIMESTAMPS, Outline, load_outline
from pipeline.derive.statements import load_joint_statement
from pipeline.errors import ConfigError, IntegrityError
from pipeline.model.attestation import Statement, Step
from pipeline.ports import Attested

if TYPE_CHECKING:
    from cryptography.x509 import Certificate
    from sigstore.models import Bundle, TrustedRoot
    from sigstore.verify.policy import VerificationPolicy

MAX_REASON_CHARS = 300


@dataclass
class _Witness:
    """A policy that notes how far the library came: it asks between steps 5 and 7."""

    policy: VerificationPolicy
    reached: bool = False
    satisfied: bool = False

    def verify(self, cert: Certificate) -> None:
        """Ask the real policy."""
        self.reached = True
        self.policy.verify(cert)
        self.satisfied = True

    @property
    def step(self) -> Step:
        """Where a failure of the library's call happened."""
        if self.satisfied:
            return Step.LOG
        return Step.IDENTITY if self.reached else Step.CERTIFICATE


@dataclass(frozen=True)
class KeylessVerifier:
    """Verifies against one trusted root (JSON bytes), one certificate subject and one issuer."""

    trusted_root: bytes = field(repr=False)
    subject: str
    issuer: str

    def __post_init__(self) -> None:
        """ConfigError for an expectation that anybody would meet."""
        if not self.subject or not self.issuer:
            raise ConfigError("a verifier expects one subject and one issuer", remedy="name both in the target")

    def verify(self, bundle: bytes, *, subject_digest: str, predicate_type: str) -> Attested:
        """See ports.BundleVerifier. `signed_at` is the earliest signed timestamp, RFC 3339 in UTC."""
        return self.verify_joint(bundle, subject_digests=(subject_digest,), predicate_type=predicate_type)

    def verify_joint(self, bundle: bytes, *, subject_digests: Sequence[str], predicate_type: str) -> Attested:
        """See ports.BundleVerifier."""
        outline = load_outline(bundle)  # 1, 2
        with _step(Step.BUNDLE):
            parsed = _load_bundle(bundle, outline)
        with _step(Step.SIGNATURE):
            _verify_signature(parsed, outline)
        with _step(Step.TIMESTAMP):
            signed_at = min(_verify_timestamps(self._root, outline))
        self._verify_origin(parsed)  # 5, 6, 7
        with _step(Step.LOG):
            _verify_checkpoint_size(parsed)
        with _step(Step.STATEMENT):
            statement = load_joint_statement(outline.payload, Step.STATEMENT)
        _verify_claim(statement, tuple(subject_digests), predicate_type)  # 9, 10
        return Attested(
            predicate_type=statement.predicate_type,
            subject_digest=statement.subject_digest,
            predicate=statement.predicate,
            signed_at=signed_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            identity=self.subject,
            issuer=self.issuer,
            bundle=bundle,
        )

    @cached_property
    def _root(self) -> TrustedRoot:
        from sigstore.models import TrustedRoot
        from sigstore_models.trustroot.v1 import TrustedRoot as Document

        with _step("the trusted root"):
            return TrustedRoot(Document.from_json(self.trusted_root))

    def _verify_origin(self, bundle: Bundle) -> None:
        from sigstore.verify import Verifier
        from sigstore.verify.policy import AllOf, Identity, OIDCIssuerV2

        # Certificates carry the issuer twice, in an old and in a new extension: both must be the expected one.
        identity = Identity(identity=self.subject, issuer=self.issuer)
        witness = _Witness(AllOf([identity, OIDCIssuerV2(self.issuer)]))
        try:
            with _step(Step.CERTIFICATE):
                verifier = Verifier(trusted_root=self._root)
            verifier.verify_dsse(bundle, witness)
            if not witness.satisfied:
                raise IntegrityError("the identity was never asked for", where=Step.IDENTITY)
        except IntegrityError:
            raise
        except Exception as error:
            raise _broken(witness.step, error) from error


def _load_bundle(bundle: bytes, outline: Outline) -> Bundle:
    from sigstore.models import Bundle

    if not outline.timestamps:  # before the library says it in other words
        raise IntegrityError("the bundle has no signed timestamp", where=Step.TIMESTAMP)
    if len(outline.timestamps) > MAX_TIMESTAMPS:
        raise IntegrityError(f"more than {MAX_TIMESTAMPS} signed timestamps", where=Step.TIMESTAMP)
    if len(outline.entries) != 1 or not outline.entries[0].get("inclusionProof"):
        raise IntegrityError("not exactly one log entry with an inclusion proof", where=Step.LOG)
    return Bundle.from_json(bundle)


def _verify_signature(bundle: Bundle, outline: Outline) -> None:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256

    key = bundle.signing_certificate.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise IntegrityError("the certificate's key is not an ECDSA key", where=Step.SIGNATURE)
    key.verify(outline.signature, outline.signed_bytes, ec.ECDSA(SHA256()))


def _verify_timestamps(root: TrustedRoot, outline: Outline) -> list[datetime]:
    from rfc3161_client import decode_timestamp_response

    return [_verify_timestamp(root, decode_timestamp_response(one), outline.signature) for one in outline.timestamps]


def _verify_timestamp(root: TrustedRoot, response: Any, signature: bytes) -> datetime:
    from rfc3161_client import VerificationError, VerifierBuilder

    failure: Exception | None = None
    for authority in root.get_timestamp_authorities():
        chain = authority.certificates(allow_expired=True)
        builder = VerifierBuilder().tsa_certificate(chain[0]).add_root_certificate(chain[-1])
        for certificate in chain[1:-1]:
            builder = builder.add_intermediate_certificate(certificate)
        try:
            builder.build().verify_message(response, signature)
        except VerificationError as error:
            failure = error
            continue
        time: datetime = response.tst_info.gen_time.astimezone(UTC)
        end = authority.validity_period_end
        if authority.validity_period_start <= time and (end is None or time < end):
            return time
    raise IntegrityError("no authority of the trusted root signed this timestamp of this signature") from failure


def _verify_checkpoint_size(bundle: Bundle) -> None:
    # The library compares the roots of proof and checkpoint, not the sizes of their trees.
    proof = bundle.log_entry._inner.inclusion_proof
    if proof is None or proof.checkpoint is None:
        raise IntegrityError("the log entry has no checkpoint", where=Step.LOG)
    lines = proof.checkpoint.envelope.split("\n")
    if len(lines) < 2 or lines[1] != str(proof.tree_size):
        raise IntegrityError("the proof is for a tree of another size than the checkpoint", where=Step.LOG)


def _verify_claim(statement: Statement, expected: tuple[str, ...], predicate_type: str) -> None:
    if statement.subject_digests != expected:
        found, wanted = ", ".join(statement.subject_digests), ", ".join(expected)
        raise IntegrityError(f"the attestation is about {found}, not {wanted}", where=Step.SUBJECT)
    if statement.predicate_type != predicate_type:
        raise IntegrityError(f"predicate type {statement.predicate_type!r}, not {predicate_type}", where=Step.PREDICATE)


@contextmanager
def _step(name: str) -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        raise error if error.where else IntegrityError(error.what, where=name) from error.__cause__
    except Exception as error:
        raise _broken(name, error) from error


def _broken(step: str, error: Exception) -> IntegrityError:
    # Not every failure is one of the library's own errors, and some of them say nothing.
    said = str(error)[:MAX_REASON_CHARS]
    what = f"{type(error).__name__}: {said!r}" if said else type(error).__name__
    return IntegrityError(f"the bundle does not verify: {what}", where=step)
