"""A real private Sigstore on a free port for contract and integration tests, and the parties around it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pipeline.adapters.keyless import EmbeddedToken, KeylessSigner, KeylessVerifier
from pipeline.embedded.sigstore import trust
from pipeline.embedded.sigstore.identity import PUBLISHER
from pipeline.embedded.sigstore.server import PrivateSigstore
from pipeline.embedded.sigstore.service import Clocks
from pipeline.model.attestation import COSIGN_SIGN
from pipeline.model.reference import load_reference

IMAGE = load_reference("127.0.0.1:5710/releases/software@sha256:" + "ab" * 32, "test")
OTHER_IMAGE = load_reference("127.0.0.1:5710/releases/software@sha256:" + "cd" * 32, "test")
DIGEST, OTHER_DIGEST = str(IMAGE.digest), str(OTHER_IMAGE.digest)
SIGN = COSIGN_SIGN


@dataclass(frozen=True)
class Party:
    """A private Sigstore that runs, and how to sign and verify with it."""

    service: PrivateSigstore
    state_path: Path
    rekor: Literal[1, 2] = 1

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.service.port

    @property
    def issuer(self) -> str:
        """Of its certificates."""
        return trust.issuer_url(self.port)

    @property
    def root(self) -> bytes:
        """Its trusted root."""
        return trust.trusted_root(self.state_path, self.port)

    def token(self) -> EmbeddedToken:
        """Of the publisher."""
        return EmbeddedToken(trust.ambient_url(self.port), self.state_path / "request-token")

    def token_of(self, subject: str) -> str:
        """Of anybody: tests hold the issuer's key."""
        return self.service.services.issuer.token(subject, int(time.time()))

    def signer(self, subject: str = PUBLISHER, budget_s: float = 0) -> KeylessSigner:
        """Signs as subject."""
        token = self.token() if subject == PUBLISHER else lambda: self.token_of(subject)
        return KeylessSigner(trust.trust_config(self.state_path, self.port, self.rekor), token, budget_s)

    def verifier(
        self, subject: str = PUBLISHER, issuer: str | None = None, root: bytes | None = None
    ) -> KeylessVerifier:
        """Expects the publisher unless told otherwise."""
        return KeylessVerifier(root or self.root, subject, issuer or self.issuer)


@contextmanager
def running(state_path: Path, rekor: Literal[1, 2] = 1, clocks: Clocks | None = None) -> Iterator[Party]:
    """A private Sigstore on a free port for the length of a block."""
    with PrivateSigstore(state_path, 0, clocks) as service:
        yield Party(service, state_path, rekor)
