"""Where the signer's identity comes from: the local target's issuer, or the CI system that runs the pipeline.

A token is a secret: nothing here puts one, or the request token, into an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import AccessError, ServiceError

AUDIENCE = "sigstore"
TIMEOUT_S = 10
MAX_ANSWER_BYTES = 64 << 10


@dataclass(frozen=True)
class EmbeddedToken:
    """Asks the private Sigstore's ambient endpoint (`url`), showing the secret in `request_token_path`."""

    url: str
    request_token_path: Path

    def __call__(self) -> str:
        """A fresh identity token. ServiceError when nothing answers, AccessError when it refuses."""
        import requests

        try:
            secret = self.request_token_path.read_text().strip()
        except OSError as error:
            raise AccessError(
                f"the request token cannot be read: {error.strerror}",
                where=str(self.request_token_path),
                remedy="start the private Sigstore (nox -s up)",
            ) from None
        with requests.Session() as session:
            session.trust_env = False  # no proxy and no netrc between us and loopback
            headers = {"Authorization": f"bearer {secret}"}
            try:
                answer = session.get(
                    self.url, params={"audience": AUDIENCE}, headers=headers, timeout=TIMEOUT_S, allow_redirects=False
                )
            except requests.RequestException as error:
                raise ServiceError(
                    f"the identity issuer does not answer: {type(error).__name__}",
                    where=self.url,
                    remedy="start the private Sigstore (nox -s up)",
                ) from None
        if answer.status_code != 200 or len(answer.content) > MAX_ANSWER_BYTES:
            raise AccessError(f"the identity issuer answers {answer.status_code}", where=self.url)
        try:
            return str(answer.json()["value"])
        except (ValueError, KeyError, TypeError):
            raise ServiceError("the identity issuer's answer holds no token", where=self.url) from None


@dataclass(frozen=True)
class AmbientToken:
    """The identity that a CI system gives its jobs, as sigstore-python finds it."""

    def __call__(self) -> str:
        """A fresh identity token; AccessError where there is no ambient identity."""
        from sigstore.oidc import detect_credential

        try:
            token = detect_credential()
        except Exception as error:  # noqa: BLE001 - the text of an ambient failure may quote the request
            raise AccessError(
                f"the ambient identity cannot be used: {type(error).__name__}",
                remedy="give the job the permission to request identity tokens (id-token: write)",
            ) from None
        if token is None:
            raise AccessError(
                "there is no ambient identity to sign with",
                remedy="sign from a CI job that has one (GitHub Actions: permissions: id-token: write)",
            )
        return token
