"""A private Docker engine, where none answers: the distribution's containerd and dockerd, with everything of their own.

Data is under the state folder; sockets are in a short folder under /run, since a socket's path has at most 107 bytes.
An own containerd, because dockerd would otherwise share the machine's, and with it the containers of another engine.
An own bridge, because `--bridge none` makes dockerd delete another engine's docker0. No packet filter is touched.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import shutil
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pipeline.embedded.bridge import make_bridge, remove_bridge
from pipeline.embedded.leftovers import container_processes, unmount_under
from pipeline.embedded.loopback import UnixConnection, http_status
from pipeline.embedded.process import SEARCH_PATH, find_processes, terminate
from pipeline.embedded.service import Service, ensure, halt, is_healthy
from pipeline.errors import ServiceError
from pipeline.files import make_private_folder, write_atomic

_RUN = Path("/run")
_SHIM_SOCKETS = _RUN / "containerd" / "s"
_UNUSED_PLUGINS = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]


@dataclass(frozen=True)
class PrivateEngine:
    """Where an engine of a state folder keeps its things. `proxies` are variables that its pulls need."""

    state_path: Path
    proxies: tuple[tuple[str, str], ...] = ()

    @property
    def _seed(self) -> str:
        return hashlib.sha256(os.fsencode(self.state_path)).hexdigest()

    @property
    def run_path(self) -> Path:
        """Sockets and other things of a running engine; gone when it is stopped."""
        return _RUN / f"pipeline-{self._seed[:12]}"

    @property
    def data_path(self) -> Path:
        """Images and containers."""
        return self.state_path / "data"

    @property
    def socket_path(self) -> Path:
        """Where it listens."""
        return self.run_path / "docker.sock"

    @property
    def url(self) -> str:
        """As DOCKER_HOST would name it."""
        return f"unix://{self.socket_path}"

    @property
    def bridge(self) -> str:
        """The interface's name, at most 15 characters."""
        return f"pl-{self._seed[:10]}"

    @property
    def subnet_seed(self) -> int:
        """Where to begin to look for a free network."""
        return int(self._seed[:8], 16)


def engine_answers(url: str) -> bool:
    """Whether a Docker engine answers at a `unix://` or `tcp://` address."""
    scheme, _, rest = url.partition("://")
    if scheme == "unix":
        return http_status(UnixConnection(rest, 5), "/_ping") == 200
    host, _, port = rest.rstrip("/").rpartition(":")
    if scheme not in ("tcp", "http") or not port.isdecimal():
        raise ServiceError(
            f"an engine address of a kind that is not supported: {url}",
            where="DOCKER_HOST",
            remedy="use unix:///path or tcp://host:port",
        )
    return http_status(http.client.HTTPConnection(host, int(port), timeout=5), "/_ping") == 200


def start(engine: PrivateEngine) -> None:
    """Leave a healthy engine alone; otherwise remove what is left of it and start it. ServiceError if that fails."""
    if all(is_healthy(service) for service in make_services(engine)):
        return
    _require_root()
    stop(engine)
    _prepare(engine)
    for service in make_services(engine):
        ensure(service)


def stop(engine: PrivateEngine) -> None:
    """End it and all that it ran: processes, mounts, bridge, sockets. Images stay in the data folder."""
    containerd, dockerd = make_services(engine)
    # without containerd, dockerd would wait in vain for its containers to end
    halt(dockerd, None if find_processes(containerd.marker) else 0)
    halt(containerd)
    shims = find_processes(("-address", str(engine.run_path / "containerd.sock")))
    terminate(shims, grace_s=0)
    terminate(container_processes(engine.data_path), grace_s=0)
    unmount_under(engine.state_path, engine.run_path)
    if engine.run_path.exists():
        remove_bridge(engine.bridge)
        _remove_shim_sockets(engine.run_path / "containerd.sock", engine.data_path)
        shutil.rmtree(engine.run_path)


def make_services(engine: PrivateEngine) -> tuple[Service, Service]:
    """containerd and dockerd, in the order in which they start."""
    return _make_containerd(engine), _make_dockerd(engine)


def _make_containerd(engine: PrivateEngine) -> Service:
    config_path = engine.state_path / "containerd.toml"
    return Service(
        name="containerd",
        program="containerd",
        package="containerd",
        arguments=("--config", str(config_path)),
        marker=("--config", str(config_path)),
        folder=engine.state_path,
        log_path=engine.state_path / "containerd.log",
        is_ready=lambda: _accepts(engine.run_path / "containerd.sock"),
    )


def _make_dockerd(engine: PrivateEngine) -> Service:
    paths = {
        "--config-file": engine.state_path / "daemon.json",
        "--containerd": engine.run_path / "containerd.sock",
        "--data-root": engine.data_path,
        "--exec-root": engine.run_path / "docker",
        "--pidfile": engine.run_path / "docker.pid",
    }
    untouched = ("--iptables=false", "--ip6tables=false", "--ip-masq=false", "--ip-forward=false")
    places = tuple(text for option, path in paths.items() for text in (option, str(path)))
    network = ("--host", engine.url, "--bridge", engine.bridge, *untouched)
    return Service(
        name="engine",
        program="dockerd",
        package="docker.io",
        arguments=(
            *places,
            *network,
            "--shutdown-timeout",
            "5",
            "--log-level",
            "warn",
        ),
        marker=("--data-root", str(engine.data_path)),
        folder=engine.state_path,
        log_path=engine.state_path / "dockerd.log",
        is_ready=lambda: engine_answers(engine.url),
        environment={"PATH": SEARCH_PATH, "HOME": str(engine.state_path), **dict(engine.proxies)},
        stop_grace_s=20,
    )


def _prepare(engine: PrivateEngine) -> None:
    make_private_folder(engine.state_path)
    make_private_folder(engine.run_path)
    write_atomic(engine.state_path / "daemon.json", b"{}\n", 0o600)
    settings = [
        "version = 2",
        f"root = {json.dumps(str(engine.state_path / 'containerd'))}",
        f"state = {json.dumps(str(engine.run_path / 'containerd'))}",
        f"disabled_plugins = {json.dumps(_UNUSED_PLUGINS)}",
        "[grpc]",
        f"address = {json.dumps(str(engine.run_path / 'containerd.sock'))}",
    ]
    write_atomic(engine.state_path / "containerd.toml", "\n".join([*settings, ""]).encode(), 0o600)
    make_bridge(engine.bridge, engine.subnet_seed)


def _require_root() -> None:
    if os.geteuid() != 0:
        raise ServiceError(
            "no Docker engine answers, and a private one needs root",
            where="DOCKER_HOST and /var/run/docker.sock",
            remedy="start Docker, or set DOCKER_HOST, or run the same command as root",
        )


def _accepts(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, suppress(OSError):
        probe.connect(str(path))
        return True
    return False


def _remove_shim_sockets(address: Path, data_path: Path) -> None:
    """A shim that was killed leaves its socket in containerd's one folder, named after its address and container."""
    containers = data_path / "containers"
    for container in containers.iterdir() if containers.exists() else ():
        name = hashlib.sha256(os.fsencode(address / "moby" / container.name)).hexdigest()
        (_SHIM_SOCKETS / name).unlink(missing_ok=True)
