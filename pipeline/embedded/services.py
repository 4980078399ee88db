"""The local target's services as one thing: an engine, a registry with its token server, a private Sigstore.

Ports are consecutive: `base_port` the registry, +1 its token server, +2 Sigstore. Everything listens on loopback.
`start` and `stop` are for whoever holds `pipeline.files.Lock` of the state folder; they take it themselves.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from pipeline.embedded import engine, registry
from pipeline.embedded.engine import PrivateEngine, engine_answers
from pipeline.embedded.loopback import HOST, port_status
from pipeline.embedded.service import Service, ServiceStatus, ensure, halt, observe
from pipeline.errors import ServiceError
from pipeline.files import Lock, make_private_folder

DEFAULT_ENGINE_URL = "unix:///var/run/docker.sock"
_SIGSTORE_MODULE = "pipeline.embedded.sigstore"


@dataclass(frozen=True)
class Services:
    """What is to run. `engine_url` is what a person set (DOCKER_HOST); None is to find an engine or start one.

    `proxies` are the environment's proxy variables, which a private engine needs to pull from elsewhere.
    """

    state_path: Path
    base_port: int = 5710
    engine_url: str | None = None
    proxies: tuple[tuple[str, str], ...] = ()

    @property
    def registry(self) -> str:
        """Host and port, as image references carry it."""
        return f"{HOST}:{self.base_port}"

    @property
    def sigstore_port(self) -> int:
        """Of OIDC issuer, certificate authority, log and timestamps."""
        return self.base_port + 2

    @property
    def sigstore_url(self) -> str:
        """The private Sigstore's address."""
        return f"http://{HOST}:{self.sigstore_port}"

    @property
    def private_engine(self) -> PrivateEngine:
        """The engine that is started where no other answers."""
        return PrivateEngine(self.state_path.resolve() / "engine", self.proxies)

    @property
    def registry_path(self) -> Path:
        """Secrets, configuration and storage of the registry."""
        return self.state_path.resolve() / "registry"

    @property
    def sigstore_path(self) -> Path:
        """Keys and log of the private Sigstore."""
        return self.state_path.resolve() / "sigstore"


@dataclass(frozen=True)
class Status:
    """What runs. `engine_private` says whether the engine is ours to stop."""

    engine_url: str
    engine_private: bool
    registry: str
    sigstore_url: str
    services: tuple[ServiceStatus, ...]

    @property
    def ready(self) -> bool:
        """Whether all of it does."""
        return all(service.state == "ready" for service in self.services)


def start(services: Services) -> Status:
    """Make everything run, whatever state it was left in. LockedError beside another start or stop; ServiceError."""
    with _locked(services, "up"):
        # those with fixed ports first: when one is taken, no engine is left running
        uses_other = _uses_other_engine(services)
        registry.prepare(services.registry_path, services.base_port, services.base_port + 1)
        make_private_folder(services.sigstore_path)
        for service in _make_services(services):
            ensure(service)
        if not uses_other:
            engine.start(services.private_engine)
        return status(services)


def stop(services: Services) -> None:
    """End every process, mount, bridge and socket of these services; images, blobs, keys and logs stay on disk."""
    with _locked(services, "down"):
        for service in reversed(_make_services(services)):
            halt(service)
        engine.stop(services.private_engine)


def status(services: Services) -> Status:
    """What runs now; nothing is started. ServiceError when the engine that was asked for does not answer."""
    other = _uses_other_engine(services)
    private = services.private_engine
    url = (services.engine_url or DEFAULT_ENGINE_URL) if other else private.url
    observed = [] if other else [observe(service, private.url) for service in engine.make_services(private)]
    observed += [observe(service, f"{HOST}:{service.port}") for service in _make_services(services)]
    if other:
        observed.insert(0, ServiceStatus("engine (not ours)", "ready", url, None))
    return Status(url, not other, services.registry, services.sigstore_url, tuple(observed))


def credentials(services: Services) -> tuple[str, str]:
    """User and password that may push to the registry."""
    return registry.load_credentials(services.registry_path)


def _locked(services: Services, verb: str) -> Lock:
    return Lock(make_private_folder(services.state_path) / "services.lock", verb)


def _uses_other_engine(services: Services) -> bool:
    """An engine that was asked for, else one of ours that runs, else the machine's own, else one of ours."""
    if services.engine_url is not None:
        if not engine_answers(services.engine_url):
            raise ServiceError(
                f"no Docker engine answers at {services.engine_url}",
                where="DOCKER_HOST",
                remedy="start that engine, or unset DOCKER_HOST to have a private one started",
            )
        return services.engine_url != services.private_engine.url
    return not engine_answers(services.private_engine.url) and engine_answers(DEFAULT_ENGINE_URL)


def _make_services(services: Services) -> tuple[Service, ...]:
    tokens = registry.make_token_service(services.registry_path, services.base_port + 1)
    return tokens, registry.make_registry_service(services.registry_path, services.base_port), _make_sigstore(services)


def _make_sigstore(services: Services) -> Service:
    state_path, port = services.sigstore_path, services.sigstore_port
    return Service(
        name="Sigstore",
        program=sys.executable,
        package="python3",
        arguments=("-m", _SIGSTORE_MODULE, str(state_path), str(port)),
        marker=("-m", _SIGSTORE_MODULE, str(state_path)),
        folder=registry.SOURCE_PATH,
        log_path=state_path / "sigstore.log",
        is_ready=lambda: port_status(port, "/api/v2/trustBundle") == 200,
        port=port,
    )
