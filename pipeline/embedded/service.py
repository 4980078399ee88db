"""One background service: how it is recognised, started, known to be ready, and stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pipeline.embedded.loopback import require_free_port
from pipeline.embedded.process import Running, find_processes, find_program, read_log_tail, spawn, terminate, wait_until
from pipeline.errors import ServiceError

_HANG_S = 3
_EXEC_S = 1
State = Literal["ready", "hanging", "stopped"]


@dataclass(frozen=True)
class Service:
    """`marker` is a run of arguments that only this service's process has: it holds a path of its own state.

    The program is looked for when it is started: what is not installed can still be stopped, and has a status.
    """

    name: str
    program: str
    package: str
    arguments: tuple[str, ...]
    marker: tuple[str, ...]
    folder: Path
    log_path: Path
    is_ready: Callable[[], bool]
    port: int | None = None
    environment: Mapping[str, str] | None = None
    start_timeout_s: float = 30
    stop_grace_s: float = 10


@dataclass(frozen=True)
class ServiceStatus:
    """Of one service: `where` is its address, `pid` None when it does not run."""

    name: str
    state: State
    where: str
    pid: int | None


def is_healthy(service: Service) -> bool:
    """Whether exactly one process runs it, as it would be started now, and answers within a few seconds."""
    found = find_processes(service.marker)
    return [running.argv[1:] for running in found] == [service.arguments] and wait_until(service.is_ready, _HANG_S)


def ensure(service: Service) -> None:
    """Make it run: leave a healthy one, replace one that hangs or was started otherwise. ServiceError if it fails."""
    if is_healthy(service):
        return
    halt(service)
    argv = (find_program(service.program, service.package), *service.arguments)
    if service.port is not None:
        require_free_port(service.port, service.name)
    spawn(argv, service.log_path, folder=service.folder, environment=service.environment)
    wait_until(lambda: service.is_ready() or _is_gone(service), service.start_timeout_s)
    if not (service.is_ready() and find_processes(service.marker)):
        halt(service)
        raise ServiceError(
            f"the {service.name} did not start within {service.start_timeout_s:g} s",
            where=f"{service.log_path}\n{read_log_tail(service.log_path)}",
            remedy="see the log, then run the same command again",
        )


def _is_gone(service: Service) -> bool:
    """No process for a while. One look is not enough: in the middle of execve a process shows no arguments."""
    return not wait_until(lambda: find_processes(service.marker), _EXEC_S)


def halt(service: Service, grace_s: float | None = None) -> None:
    """Stop every process of the service, whoever started it; by force after the grace, its own by default."""
    terminate(find_processes(service.marker), service.stop_grace_s if grace_s is None else grace_s)


def observe(service: Service, where: str) -> ServiceStatus:
    """What it is doing now, without waiting."""
    found: Sequence[Running] = find_processes(service.marker)
    if not found:
        return ServiceStatus(service.name, "stopped", where, None)
    return ServiceStatus(service.name, "ready" if service.is_ready() else "hanging", where, found[0].pid)
