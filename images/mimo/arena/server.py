"""One process that serves an arena: the framework's routes on one port, every child reaped, a quick end on SIGTERM."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from typing import Any

import uvicorn
from openenv.core.env_server.http_server import create_app

from arena.connections import Connection, Socket
from arena.episode import Arena, ArenaEnvironment
from arena.frames import FrameGuard
from arena.models import ShellAction, ShellObservation

SHUTDOWN_S = 1.0
_SOCKET_LIMIT_BYTES = 16 << 20
# Accepted at once, before a limit on connections is looked at.
_BACKLOG = 128


class _Server(uvicorn.Server):
    """The framework's server without its own signal handlers: ours also end a running command."""

    def capture_signals(self) -> contextlib.AbstractContextManager[None]:  # type: ignore[override]
        return contextlib.nullcontext()


def make_app(environment_factory: Callable[[], ArenaEnvironment], name: str, on_disconnect: Callable[[], None]) -> Any:
    """The ASGI application: the framework's own, behind our guard of frames."""
    app = create_app(environment_factory, ShellAction, ShellObservation, env_name=name, max_concurrent_envs=1)
    return FrameGuard(app, on_disconnect)


def serve(arena: Arena, name: str, port: int = 8000, host: str = "0.0.0.0") -> None:  # noqa: S104 - a container's port
    """Serve until SIGTERM or SIGINT; then end the running command and return within two seconds."""
    app = make_app(arena.environment, name, arena.leave)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        loop="asyncio",
        http=Connection,
        ws=Socket,
        lifespan="off",
        backlog=_BACKLOG,
        log_level="critical",
        access_log=False,
        ws_max_size=_SOCKET_LIMIT_BYTES,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=1,
    )
    asyncio.run(_run(_Server(config), arena))


async def _run(server: uvicorn.Server, arena: Arena) -> None:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGCHLD, arena.runner.reaper.reap)

    def stop() -> None:
        server.should_exit = True
        arena.leave()
        # Nothing is left to save: a thread that still waits must not hold the end back.
        loop.call_later(SHUTDOWN_S, os._exit, 0)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    await server.serve()
    os._exit(0)
