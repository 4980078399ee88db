"""One command as the agent: bounded in time, output and what it leaves behind.

Output goes through a pipe into a bounded tail, so neither memory nor disk of the server grows with it. When the first
process ends, or its time is over, or the client has gone, every process of the agent's UID is killed before `run`
returns.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from arena.agent import Agent
from arena.failures import InfrastructureError, RequestError
from arena.identity import as_user, run_apart
from arena.ipc import owned, remove_system_v
from arena.output import Tail
from arena.processes import Reaper, kill_all
from arena.room import Room

ACTION_TIMEOUT_S = 60.0
TIMED_OUT = 124
_KILLED = 137
_CHUNK_BYTES = 1 << 18
_PIPE_BYTES = 1 << 18
_TICK_S = 0.02
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


@dataclass(frozen=True)
class ShellResult:
    """`exit_code` as a shell gives it; 124 when the time was over. `output` takes at most 12,000 bytes of UTF-8."""

    exit_code: int
    output: str
    timed_out: bool = False


@dataclass
class _Run:
    """One process while it runs."""

    pid: int
    pidfd: int
    pipe: int
    tail: Tail = field(default_factory=Tail)


class ShellRunner:
    """Runs one command at a time in `cwd` as `agent`. `abort` may be called from any thread."""

    def __init__(
        self, cwd: str, agent: Agent | None = None, reaper: Reaper | None = None, timeout_s: float = ACTION_TIMEOUT_S
    ) -> None:
        self.cwd, self.agent, self.timeout_s = cwd, agent or Agent(), timeout_s
        self.reaper = reaper or Reaper()
        self._abort = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def run(self, command: str) -> ShellResult:
        """`/bin/bash -c command`; RequestError for a command that no process can be given."""
        if "\0" in command:
            raise RequestError("a command cannot hold a NUL character")
        return self.execute(["/bin/bash", "-c", command], timeout_s=self.timeout_s)

    def execute(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        variables: Mapping[str, str] | None = None,
    ) -> ShellResult:
        """Run argv as the agent; InfrastructureError when it cannot be started or the client went away meanwhile."""
        environment = self.agent.environment() | dict(variables or {})
        return run_apart(lambda: self._execute(argv, environment, stdin, timeout_s))

    def abort(self) -> None:
        """End the running command, and every later one until `rearm`."""
        os.eventfd_write(self._abort, 1)

    def rearm(self) -> None:
        """Forget an earlier `abort`: a new episode begins."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._abort)

    def kill_all(self) -> None:
        """Kill and collect every process of the agent, and free shared memory, which would outlive them."""
        kill_all(self.agent.uid, self.reaper)
        if owned("shm", self.agent.uid):
            with as_user(self.agent.uid):
                remove_system_v(self.agent.uid)

    def close(self) -> None:
        """Give back the descriptor that `abort` uses."""
        os.close(self._abort)

    def _execute(
        self, argv: Sequence[str], environment: Mapping[str, str], stdin: bytes, timeout_s: float
    ) -> ShellResult:
        with self._started(argv, environment, stdin) as running:
            end = self._watch(running, time.monotonic() + timeout_s)
            self.kill_all()
            self._collect(running)
            exit_code = self.reaper.take(running.pid)
            return _result(running.tail, exit_code, end, timeout_s)

    @contextlib.contextmanager
    def _started(self, argv: Sequence[str], environment: Mapping[str, str], stdin: bytes) -> Iterator[_Run]:
        with contextlib.ExitStack() as stack:
            source = _stdin(stdin)
            stack.callback(os.close, source)
            reading, writing = os.pipe2(os.O_CLOEXEC)
            stack.callback(os.close, reading)
            try:
                fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
                os.set_blocking(reading, False)
                pid, pidfd = self._spawn(argv, environment, source, writing)
            finally:
                os.close(writing)
            stack.callback(os.close, pidfd)
            yield _Run(pid, pidfd, reading)

    def _spawn(self, argv: Sequence[str], environment: Mapping[str, str], stdin: int, output: int) -> tuple[int, int]:
        """A process of this thread's identity: unlike a fork it needs no copy of the server's page tables."""
        targets = [(os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate((stdin, output, output))]
        with self.reaper.lock:
            try:
                with _inside(self.cwd), as_user(self.agent.uid, self.agent.gid):
                    pid = os.posix_spawn(
                        argv[0], list(argv), environment, file_actions=targets, setsid=True, setsigmask=(),
                        setsigdef=_IGNORED_BY_PYTHON,
                    )  # fmt: skip
            except OSError as error:
                raise InfrastructureError(f"could not start a command: {error}") from error
            # Until the lock is free nobody collects it, so its PID cannot be another's.
            self.reaper.expect(pid)
            with contextlib.suppress(OSError):
                Path(f"/proc/{pid}/oom_score_adj").write_text("1000")
            return pid, os.pidfd_open(pid)

    def _watch(self, running: _Run, deadline: float) -> str:
        """Read output until the process ends; returns how it ended: `exit`, `timeout`, `disk`, `memory` or `abort`."""
        poll = select.poll()
        for descriptor in (running.pidfd, running.pipe, self._abort):
            poll.register(descriptor, select.POLLIN)
        room = Room(self.cwd)
        tick = time.monotonic() + _TICK_S
        while True:
            now = time.monotonic()
            if now >= deadline:
                return "timeout"
            ready = {descriptor for descriptor, _ in poll.poll(max(0.0, min(deadline, tick) - now) * 1000 + 1)}
            if self._abort in ready:
                return "abort"
            if running.pipe in ready and not _read(running):
                poll.unregister(running.pipe)
            if running.pidfd in ready:
                return "exit"
            if time.monotonic() >= tick:
                tick = time.monotonic() + _TICK_S
                if shortage := room.shortage():
                    return shortage

    def _collect(self, running: _Run) -> None:
        """What is still in the pipe, now that nobody writes."""
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(running.pipe, _CHUNK_BYTES):
                running.tail.add(chunk)


@contextlib.contextmanager
def _inside(directory: str) -> Iterator[None]:
    """The server's working directory, for the moment in which a process inherits it; the server uses absolute paths."""
    before = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.chdir(directory)
        yield
    finally:
        os.fchdir(before)
        os.close(before)


def _read(running: _Run) -> bool:
    """Take one chunk; False at the end of the output."""
    try:
        chunk = os.read(running.pipe, _CHUNK_BYTES)
    except BlockingIOError:
        return True
    running.tail.add(chunk)
    return bool(chunk)


def _result(tail: Tail, exit_code: int, end: str, timeout_s: float) -> ShellResult:
    if end == "abort":
        raise InfrastructureError("the command was ended because its session closed")
    if end == "timeout":
        note = f"\n[the command ran longer than {timeout_s:g} s and was killed; exit code {TIMED_OUT}]\n"
        return ShellResult(TIMED_OUT, tail.text(note), timed_out=True)
    if end in ("disk", "memory"):
        return ShellResult(_KILLED, tail.text(f"\n[the command was killed because the {end} is nearly full]\n"))
    return ShellResult(exit_code, tail.text())


def _stdin(data: bytes) -> int:
    if not data:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    descriptor = os.memfd_create("stdin", os.MFD_CLOEXEC)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
