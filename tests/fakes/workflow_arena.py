"""An arena of the workflow image in this process: its real task and the framework's real routes, and faults on demand.

Only the shell and the cleanup are stand-ins: bash runs as an unprivileged user where the tests run as root, in folders
below one temporary folder. Commands that are hostile to the machine that runs the tests are answered, not run.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue
from starlette.testclient import TestClient, WebSocketTestSession
from starlette.websockets import WebSocketDisconnect

from pipeline.ports import ExecResult
from pipeline.suites.scenario import Bench
from pipeline.suites.workflow_probes import PROBES

IMAGES = Path(__file__).resolve().parents[2] / "images"
sys.path[:0] = [str(IMAGES / "software"), str(IMAGES / "mimo")]

from arena.episode import Arena as ArenaCore  # noqa: E402
from arena.server import make_app  # noqa: E402
from arena.shell import ShellResult  # noqa: E402
from workflow import curriculum, grading  # noqa: E402
from workflow.environment import WorkflowTask  # noqa: E402

AGENT = (61234, 61234) if os.getuid() == 0 else (os.getuid(), os.getgid())
# A program that changes the user is faster than `user=`, which makes subprocess copy this process.
_DROP = ("setpriv", f"--reuid={AGENT[0]}", f"--regid={AGENT[1]}", "--clear-groups", "--")
_AS_AGENT = _DROP if os.getuid() == 0 else ()
# Only root can remove what is in a folder without any mode.
_HOSTILE = (*(() if os.getuid() == 0 else ("chmod 000",)), "setsid", "kill -9", "truncate", "find /", "10485760")
_VALID: Any = {"exit_code": 0, "report": {"passed": True}}
_PLACES = {"/dev/shm": "shm", "/var/tmp": "vartmp", "/tmp": "tmp"}
# in one pass, and wherever the name ends: a cheat must never reach the folders of the machine that tests it
_PLACE = re.compile(rf"(?<![\w.-])(?:{'|'.join(_PLACES)})(?![\w.-])")


class PlainRunner:
    """What the arena needs of ShellRunner."""

    def __init__(self, root: Path, known: Mapping[str, str]) -> None:
        self._root, self._known = root, known

    def run(self, command: str) -> ShellResult:
        """One command; outputs in `known` are given without running."""
        if "\0" in command:
            raise ValueError("a command cannot hold a NUL character")
        if command in self._known or any(word in command for word in _HOSTILE):
            return ShellResult(0, self._known.get(command, ""))
        command = _PLACE.sub(lambda found: f"{self._root}/{_PLACES[found[0]]}", command)
        done = subprocess.run(
            [*_AS_AGENT, "/bin/bash", "-c", command],
            cwd=self._root / "repo",
            env={"HOME": str(self._root / "home"), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
        )  # fmt: skip
        text = done.stdout.decode("utf-8", "replace").replace(f"{AGENT[0]}:{AGENT[1]}", "2000:2000")
        return ShellResult(done.returncode, text[-12_000:])

    def rearm(self) -> None: ...

    def kill_all(self) -> None: ...

    def abort(self) -> None: ...


class Places:
    """What the arena needs of Cleanup: the folders outside the workspace, new at each reset."""

    def __init__(self, root: Path, forgetful: bool) -> None:
        self._root, self._forgetful = root, forgetful

    def run(self) -> None:
        """Empty all of them, unless forgetful."""
        for name in ("home", *_PLACES.values()):
            folder = self._root / name
            if folder.exists() and not self._forgetful:
                shutil.rmtree(folder)
            folder.mkdir(exist_ok=True)
            os.chown(folder, *AGENT)


class FaultyTask(WorkflowTask):  # type: ignore[misc]
    """The real task with the faults that are asked for."""

    faults: frozenset[str] = frozenset()

    def prepare(self, task_id: str) -> str:
        """With `seeded` the inputs depend on how many resets there were; `stale` keeps the folder."""
        if "stale" in self.faults and self._folder >= 0:
            keep = [path for path in Path(self._path).iterdir() if "left-behind" in path.name]
            saved = {path.name: path.is_dir() for path in keep}
        else:
            saved = {}
        text: str = super().prepare(task_id)
        for name, is_folder in saved.items():
            path = Path(self._path) / name
            path.mkdir() if is_folder else path.touch()
        if "seeded" in self.faults:
            self._resets = getattr(self, "_resets", 0) + 1
            path = next(Path(self._path).glob("*.json"))
            path.write_text(path.read_text() + " " * (self._resets % 50))
        if "extra-file" in self.faults:
            (Path(self._path) / "notes.txt").touch()
        return text

    def grade(self, task_id: str) -> Any:
        """With `fifo-blocks` a FIFO makes the grader wait; with `follows-links` it reads what a link names."""
        answer = Path(self._path) / "answer.json"
        if "fifo-blocks" in self.faults and answer.exists() and stat.S_ISFIFO(answer.stat().st_mode):
            raise TimeoutError("the grader waits for a writer")
        if "follows-links" in self.faults and answer.is_symlink() and answer.is_file():
            data = answer.read_bytes()
            answer.unlink()
            answer.write_bytes(data)
            os.chown(answer, *AGENT)
        return super().grade(task_id)

    @property
    def _path(self) -> str:
        return f"{self._parent}/{self._name}"


class FaultyCurriculum:
    """The real curriculum with another grader."""

    TASK_IDS = curriculum.TASK_IDS
    make_task = staticmethod(curriculum.make_task)

    def __init__(self, score: Callable[[dict[str, Any], dict[str, Any]], float]) -> None:
        self._score = score

    def grade(self, task: Any, answer: dict[str, Any]) -> float:
        """The faulty score."""
        return self._score(task.expected, answer)


class Ends:
    """An ASGI layer that knows which sockets the server has done with: the test client cancels those that it closes."""

    def __init__(self, app: Any) -> None:
        self._app, self.ended = app, set[bytes]()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass everything through."""
        try:
            await self._app(scope, receive, send)
        finally:
            self.ended.add(scope.get("query_string", b""))


@dataclass
class FakeSocket:
    """Implements ports.Arena over the framework's own test client."""

    client: TestClient
    ends: Ends
    session: WebSocketTestSession | None = None

    def exchange(self, frame: str | bytes, timeout_s: float = 130) -> Mapping[str, Any]:
        """One frame, one reply."""
        if self.session is None:
            self.session = self.client.websocket_connect(f"/ws?{id(self)}").__enter__()
        kind = "text" if isinstance(frame, str) else "bytes"
        self.session.send({"type": "websocket.receive", kind: frame})
        reply = self.session.receive()
        if reply["type"] == "websocket.close":
            self.close()
            raise WebSocketDisconnect(reply.get("code", 1000))
        data: Mapping[str, Any] = json.loads(reply["text"])
        return data

    def reset(self, task_id: str | None = None, seed: int | None = None) -> Mapping[str, Any]:
        """Not used by the suite."""
        raise NotImplementedError

    def shell(self, command: str) -> Mapping[str, Any]:
        """Not used by the suite."""
        raise NotImplementedError

    def finish(self) -> Mapping[str, Any]:
        """Not used by the suite."""
        raise NotImplementedError

    def close(self) -> None:
        """End the session."""
        session, self.session = self.session, None
        if session is not None:
            session.close(1000)
            deadline = time.monotonic() + 10
            while str(id(self)).encode() not in self.ends.ended and time.monotonic() < deadline:
                time.sleep(0.001)
            self.ends.ended.discard(str(id(self)).encode())
            session.__exit__(None, None, None)


@dataclass
class FakeContainer:
    """Implements the part of ports.Container that the suite uses."""

    client: TestClient
    id: str = "fake"
    url: str = "http://fake"

    def exec(self, argv: Sequence[str], *, user: str = "0:0", timeout_s: float = 60, stdin: bytes = b"") -> ExecResult:
        """The one program that the suite runs: it asks the HTTP routes."""
        routes = {}
        for path in ("/health", "/schema", "/metadata", "/web"):
            reply = self.client.get(path)
            routes[path] = [reply.status_code, reply.json() if reply.status_code == 200 else None]
        return ExecResult(0, json.dumps(routes).encode())


def play_episode(socket: FakeSocket, task_id: str | None) -> JsonValue:
    """What the framework's own client would see; an error reply raises."""
    steps = [{"operation": "shell", "command": "echo here"}, {"operation": "finish"}]
    frames = [{"type": "reset", "data": {"task_id": task_id}}, *({"type": "step", "data": step} for step in steps)]
    try:
        begun, acted, ended = (socket.exchange(json.dumps(frame))["data"] for frame in frames)
        return {"reset": begun["reward"], "output": acted["observation"]["output"], "done": ended["done"]}
    finally:
        socket.close()


@contextmanager
def workflow_bench(
    *faults: str, score: Callable[..., float] = grading.grade_components, **outputs: str
) -> Iterator[Bench]:
    """A bench with one fake container. `outputs` replace what the probes of these names see."""
    root = Path(tempfile.mkdtemp(prefix="workflow-arena-"))
    try:
        root.chmod(0o755)
        task = FaultyTask(str(root / "repo"), *AGENT, FaultyCurriculum(score))
        task.faults = frozenset(faults)
        (root / "repo").mkdir()
        known = dict.fromkeys((command for probe in PROBES for command in probe.commands), "")
        known |= {probe.commands[-1]: outputs.get(probe.name.replace("-", "_"), probe.output) for probe in PROBES}
        core = ArenaCore(task, PlainRunner(root, known), Places(root, "forgetful" in faults))  # type: ignore[arg-type]
        app = Ends(make_app(core.environment, "workflow", lambda: None))
        with TestClient(app) as client:
            container: Any = FakeContainer(client)
            unused: Any = None

            def play_framework(url: str, task_id: str | None = None) -> JsonValue:
                return play_episode(FakeSocket(client, app), task_id)

            yield Bench(container, lambda: FakeSocket(client, app), unused, unused, lambda url: _VALID, play_framework)
    finally:
        shutil.rmtree(root)
