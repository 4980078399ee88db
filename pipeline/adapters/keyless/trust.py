"""The public-good Sigstore's trusted root and services, from its TUF repository or from the library's own copy."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.errors import ServiceError


@dataclass(frozen=True)
class PublicTrust:
    """JSON bytes: what a verifier pins, and what a signer uses."""

    trusted_root: bytes
    trust_config: bytes


def load_public_trust(*, offline: bool = False) -> PublicTrust:
    """Refresh over TUF, or take the newest local copy when offline; ServiceError when that fails."""
    from sigstore.models import ClientTrustConfig

    try:
        config = ClientTrustConfig.production(offline=offline)
    except Exception as error:
        raise ServiceError(
            f"the public Sigstore's trust configuration cannot be had: {type(error).__name__}",
            where="the TUF repository of sigstore.dev",
            remedy="check the network, or pin a trusted root in the target",
        ) from error
    inner = config._inner  # the library has no public way to write what it read
    return PublicTrust(inner.trusted_root.to_json().encode(), inner.to_json().encode())
