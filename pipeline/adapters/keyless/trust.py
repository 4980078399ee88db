"""The public-good Sigstore's trusted root and services, from its TUF repository or from the library's own copy."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from pipeline.errors import ConfigError, ServiceError
from pipeline.model.record import canonical_json


@dataclass(frozen=True)
class PublicTrust:
    """JSON bytes: what a verifier pins, and what a signer uses."""

    trusted_root: bytes
    trust_config: bytes


def load_public_trust(rekor: Literal[1, 2] = 1, *, offline: bool = False) -> PublicTrust:
    """Refresh over TUF, or take the newest local copy when offline.

    The configuration names logs of version `rekor` only, where the library would take the newest: ConfigError when the
    public instance has none. ServiceError when nothing can be had. The library keeps its copy in the user's cache.
    """
    from sigstore.models import ClientTrustConfig

    try:
        # The library has no public way to write what it read.
        inner = ClientTrustConfig.production(offline=offline)._inner
    except Exception as error:
        raise ServiceError(
            f"the public Sigstore's trust configuration cannot be had: {type(error).__name__}",
            where="the TUF repository of sigstore.dev",
            remedy="check the network, or pin a trusted root in the target",
        ) from error
    config = json.loads(inner.to_json())
    logs = config["signingConfig"]["rekorTlogUrls"]
    config["signingConfig"]["rekorTlogUrls"] = [log for log in logs if log["majorApiVersion"] == rekor]
    if not config["signingConfig"]["rekorTlogUrls"]:
        raise ConfigError(f"the public Sigstore names no log of version {rekor}", remedy="set the target's rekor: 1")
    return PublicTrust(canonical_json(config["trustedRoot"]), canonical_json(config))
