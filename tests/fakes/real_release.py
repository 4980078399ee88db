"""The tiny release over the real registry, Sigstore and engine of the tests' services."""

from __future__ import annotations

import uuid
from pathlib import Path

from pipeline.adapters.keyless import EmbeddedToken, KeylessSigner, KeylessVerifier
from pipeline.adapters.registry import AnonymousRegistry, CredentialedRegistry, Credentials
from pipeline.embedded import services as embedded
from pipeline.embedded.services import Services
from pipeline.embedded.sigstore import trust
from pipeline.model.release import Target
from pipeline.ports import BundleVerifier, Engine
from tests.fakes.release import TinyWorld, make_tiny_release
from tests.fakes.signing import SUBJECT


class RealWorld(TinyWorld):
    """Everything is real but the sources and the suite. Each has a repository of its own in the registry."""

    def __init__(self, root: Path, services: Services, engine: Engine) -> None:
        self.services = services
        self.issuer = trust.issuer_url(services.sigstore_port)
        if not root.exists():
            make_tiny_release(root, services.base_port, f"tiny-{uuid.uuid4().hex[:12]}", self.issuer)
        super().__init__(root)
        self.engine = engine

    @property
    def anonymous(self) -> AnonymousRegistry:
        return AnonymousRegistry()

    def make_publisher(self) -> CredentialedRegistry:  # type: ignore[override]
        return CredentialedRegistry(Credentials(self.services.registry, *embedded.credentials(self.services)))

    @property
    def signer(self) -> KeylessSigner:
        port, path = self.services.sigstore_port, self.services.sigstore_path
        token = EmbeddedToken(trust.ambient_url(port), path / "request-token")
        return KeylessSigner(
            trust.trust_config(path, port, self.plan.target.rekor), token, self.plan.target.log_outage_budget_s
        )

    @property
    def trusted_root(self) -> bytes:
        return trust.trusted_root(self.services.sigstore_path, self.services.sigstore_port)

    @property
    def verifier(self) -> KeylessVerifier:
        return KeylessVerifier(self.trusted_root, SUBJECT, self.issuer)

    def make_verifier(self, target: Target, trusted_root: bytes) -> BundleVerifier:
        return KeylessVerifier(trusted_root, target.identity.subject, target.identity.issuer)
