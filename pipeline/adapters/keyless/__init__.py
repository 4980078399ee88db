"""Keyless signing and verification over sigstore-python, which is imported only when it is used (it takes a second).

`token`: where an identity comes from. `signer`: ports.Signer. `verifier`: ports.BundleVerifier. `trust`: the
configuration of the public instance.
"""

from pipeline.adapters.keyless.signer import KeylessSigner
from pipeline.adapters.keyless.token import AmbientToken, EmbeddedToken
from pipeline.adapters.keyless.trust import PublicTrust, load_public_trust
from pipeline.adapters.keyless.verifier import KeylessVerifier

__all__ = ["AmbientToken", "EmbeddedToken", "KeylessSigner", "KeylessVerifier", "PublicTrust", "load_public_trust"]
