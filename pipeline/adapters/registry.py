"""The registry client: one reader without an identity, one writer with exactly one. See docs/adr/0006.

Reading order: `registry_url` (where it may go), `registry_exchange` and `registry_wire` (limits), `registry_transport`
(redirects), `registry_auth` (tokens), `registry_session` (retries), `registry_pull`, `registry_push`.
"""

from __future__ import annotations

from pipeline.adapters.registry_credentials import Credentials, load_docker_credentials
from pipeline.adapters.registry_exchange import Limits
from pipeline.adapters.registry_pull import AnonymousRegistry
from pipeline.adapters.registry_push import CredentialedRegistry
from pipeline.adapters.registry_retry import Clock, RetryBudget

__all__ = [
    "AnonymousRegistry",
    "Clock",
    "CredentialedRegistry",
    "Credentials",
    "Limits",
    "RetryBudget",
    "load_docker_credentials",
]
