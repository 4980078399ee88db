"""The local registry: Debian's docker-registry, with the token server in front of every write.

Configuration: https://distribution.github.io/distribution/about/configuration/
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pipeline
from pipeline.embedded import tokens
from pipeline.embedded.credentials import load_or_make_key, load_or_make_password
from pipeline.embedded.loopback import HOST, port_status
from pipeline.embedded.service import Service
from pipeline.files import make_private_folder, write_atomic

SOURCE_PATH = Path(pipeline.__file__).parent.parent


def make_token_service(state_path: Path, port: int) -> Service:
    """The token server over the secrets in a folder; `prepare` makes them."""
    return Service(
        name="token server",
        program=sys.executable,
        package="python3",
        arguments=("-m", tokens.__name__, str(state_path), str(port)),
        marker=("-m", tokens.__name__, str(state_path)),
        folder=SOURCE_PATH,
        log_path=state_path / "tokens.log",
        is_ready=lambda: port_status(port, "/health") == 200,
        port=port,
    )


def make_registry_service(state_path: Path, port: int) -> Service:
    """docker-registry over `state_path/storage`. It answers 401 when it is ready: nothing is open without a token."""
    config_path = state_path / "config.json"
    return Service(
        name="registry",
        program="docker-registry",
        package="docker-registry",
        arguments=("serve", str(config_path)),
        marker=("serve", str(config_path)),
        folder=state_path,
        log_path=state_path / "registry.log",
        is_ready=lambda: port_status(port, "/v2/") == 401,
        port=port,
    )


def prepare(state_path: Path, port: int, token_port: int) -> None:
    """Write secrets (once) and the registry's configuration (JSON, which its YAML parser reads)."""
    make_private_folder(state_path)
    load_or_make_password(state_path / "password")
    load_or_make_key(state_path / "token.key", state_path / "token.crt", tokens.ISSUER)
    config = {
        "version": "0.1",
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(state_path / "storage")}, "delete": {"enabled": False}},
        "http": {"addr": f"{HOST}:{port}", "secret": load_or_make_password(state_path / "upload-secret")},
        "auth": {
            "token": {
                "realm": f"http://{HOST}:{token_port}/token",
                "service": tokens.SERVICE,
                "issuer": tokens.ISSUER,
                "rootcertbundle": str(state_path / "token.crt"),
            }
        },
    }
    write_atomic(state_path / "config.json", json.dumps(config, indent=1).encode(), 0o600)


def load_credentials(state_path: Path) -> tuple[str, str]:
    """User and password that may push; made when absent."""
    make_private_folder(state_path)
    return tokens.USER, load_or_make_password(state_path / "password")
