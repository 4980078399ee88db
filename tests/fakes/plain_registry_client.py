"""The registry protocol in its shortest form, apart from the pipeline's own client: to test the registry itself."""

from __future__ import annotations

from typing import Any

import requests

from pipeline.embedded import tokens
from pipeline.embedded.services import Services
from pipeline.layout import Layout
from pipeline.model.oci import Manifest

Credentials = tuple[str, str] | None


def ask_token(services: Services, credentials: Credentials, *scopes: str, **extra: str) -> requests.Response:
    """The token server's reply."""
    parameters: dict[str, Any] = {"service": tokens.SERVICE, "scope": list(scopes), **extra}
    url = f"http://127.0.0.1:{services.base_port + 1}/token"
    return requests.get(url, params=parameters, auth=credentials, timeout=10)


def bearer(services: Services, credentials: Credentials, *scopes: str) -> dict[str, str]:
    """The header that a granted token makes."""
    reply = ask_token(services, credentials, *scopes)
    reply.raise_for_status()
    return {"Authorization": f"Bearer {reply.json()['token']}"}


def push_image(
    services: Services, credentials: Credentials, repository: str, layout: Layout, manifest: Manifest
) -> None:
    """Blobs, then the manifest by digest; requests.HTTPError for any refusal."""
    url, header = (
        f"http://{services.registry}/v2/{repository}",
        bearer(services, credentials, f"repository:{repository}:pull,push"),
    )
    for blob in (manifest.view.config, *manifest.view.layers):
        started = requests.post(f"{url}/blobs/uploads/", headers=header, timeout=10)
        started.raise_for_status()
        with layout.open(blob.digest) as data:
            requests.put(
                started.headers["Location"], params={"digest": blob.digest}, data=data, headers=header, timeout=30
            ).raise_for_status()
    requests.put(
        f"{url}/manifests/{manifest.digest}",
        data=manifest.raw,
        headers={**header, "Content-Type": manifest.media_type},
        timeout=10,
    ).raise_for_status()
