"""The OIDC issuer: signed identity tokens for whoever shows the request token, as a CI system gives its jobs."""

from __future__ import annotations

import hmac
import json
from dataclasses import dataclass
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from pipeline.embedded.sigstore.refusal import RefusedError

AUDIENCE = "sigstore"
PUBLISHER = "https://local-sigstore.test/publisher"
LIFETIME_S = 300
MAX_TOKEN_CHARS = 8192

_KEY_ID = "local"
_ALGORITHM = "ES256"


@dataclass(frozen=True)
class Issuer:
    """Issues and checks tokens of one issuer URL."""

    key: ec.EllipticCurvePrivateKey
    url: str

    def token(self, subject: str, now_s: int, **claims: str) -> str:
        """A token for subject that lives LIFETIME_S from now_s (Unix seconds)."""
        payload = {
            "iss": self.url,
            "sub": subject,
            "aud": AUDIENCE,
            "iat": now_s,
            "nbf": now_s,
            "exp": now_s + LIFETIME_S,
            **claims,
        }
        return jwt.encode(payload, self.key, algorithm=_ALGORITHM, headers={"kid": _KEY_ID})

    def subject_of(self, token: str) -> str:
        """The subject of a token of this issuer that is valid now; RefusedError otherwise, without the token in it."""
        if not token or len(token) > MAX_TOKEN_CHARS:
            raise RefusedError(401, "no identity token, or one that is too long")
        try:
            claims = jwt.decode(
                token,
                self.key.public_key(),
                algorithms=[_ALGORITHM],
                audience=AUDIENCE,
                issuer=self.url,
                options={"require": ["aud", "sub", "iat", "exp", "iss"]},
            )
        except jwt.PyJWTError as error:
            raise RefusedError(401, f"the identity token is not acceptable: {type(error).__name__}") from None
        subject = claims["sub"]
        if not isinstance(subject, str) or not subject:
            raise RefusedError(401, "the identity token has no subject")
        return subject

    def configuration(self) -> dict[str, Any]:
        """OpenID Connect Discovery, section 3."""
        return {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/keys",
            "authorization_endpoint": f"{self.url}/auth",
            "token_endpoint": f"{self.url}/token",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [_ALGORITHM],
        }

    def key_set(self) -> dict[str, Any]:
        """The public key, RFC 7517."""
        key = json.loads(ECAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [{**key, "kid": _KEY_ID, "alg": _ALGORITHM, "use": "sig"}]}


def check_request_token(authorization: str, expected: str) -> None:
    """RefusedError (401) unless the header is `bearer <expected>`, compared in constant time."""
    scheme, _, presented = authorization.partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(presented.encode(), expected.encode()):
        raise RefusedError(401, "the request token is wrong")
