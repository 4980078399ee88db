"""Commands as another user: identity, ends, limits, and nothing left of them."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from arena.agent import Agent
from arena.failures import InfrastructureError, RequestError
from arena.identity import as_user, run_apart
from arena.ipc import owned
from arena.processes import Reaper, kill_all, living
from arena.shell import TIMED_OUT, ShellRunner

HIDES = Path(__file__).resolve().parents[3] / "pipeline" / "suites" / "scripts" / "hide"
# What the scripts use, and a /tmp of the test's own.
SETSID = "import os, sys; os.setsid(); os.execvp(sys.argv[1], sys.argv[1:])"
PRELUDE = f"detach() {{ python3 -c '{SETSID}' \"$@\"; }}\nulimit -u 300\n"


def test_runs_as_the_agent_with_a_clean_environment(runner: ShellRunner, agent: Agent) -> None:
    os.environ["ARENA_SECRET"] = "leaked"
    result = runner.run("id -u; id -g; id -G; umask; env | cut -d= -f1 | sort | tr '\\n' ' '")
    number = f"{agent.uid}\n"
    assert result.output.startswith(number * 3 + "0022\n")
    assert set(result.output.split("\n")[4].split()) <= {
        "HOME", "LANG", "LOGNAME", "PATH", "PWD", "SHELL", "SHLVL", "TERM", "USER", "_",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("command", "exit_code", "output"),
    [
        ("true", 0, ""),
        ("exit 3", 3, ""),
        ("kill -9 $$", 137, ""),
        ("kill -TERM $$", 143, ""),
        ("echo a; echo b >&2; echo c", 0, "a\nb\nc\n"),
        ("wc -c", 0, "0\n"),
        ("exec >&- 2>&-; exit 5", 5, ""),
        ("", 0, ""),
        ("nonsense-command", 127, None),
    ],
)
def test_ends(runner: ShellRunner, command: str, exit_code: int, output: str | None) -> None:
    result = runner.run(command)
    assert result.exit_code == exit_code
    assert output is None or result.output == output


def test_the_time_limit_kills_and_says_so(workspace: Path, agent: Agent) -> None:
    runner = ShellRunner(str(workspace), agent, timeout_s=0.5)
    begun = time.monotonic()
    result = runner.run("trap '' TERM INT; echo begun; while :; do sleep 1; done")
    assert (result.exit_code, result.timed_out) == (TIMED_OUT, True)
    assert result.output.startswith("begun\n")
    assert "longer than 0.5 s" in result.output
    assert time.monotonic() - begun < 3
    runner.close()


@pytest.mark.parametrize("script", sorted(HIDES.glob("*.sh")), ids=lambda path: path.stem)
def test_nothing_outlives_its_command(runner: ShellRunner, agent: Agent, ground: Path, script: Path) -> None:
    scratch = ground / "scratch"
    scratch.mkdir(mode=0o777)
    scratch.chmod(0o777)
    runner.run(PRELUDE + script.read_text().replace("/tmp/", f"{scratch}/"))
    assert living(agent.uid) == []


def test_endless_output_ends_with_the_time_and_keeps_its_end(workspace: Path, agent: Agent) -> None:
    runner = ShellRunner(str(workspace), agent, timeout_s=0.7)
    result = runner.run("yes")
    assert result.exit_code == TIMED_OUT
    assert len(result.output.encode()) <= 12_000
    assert "y\ny\n" in result.output
    runner.close()


def test_an_abort_ends_the_command_and_later_ones_until_rearmed(runner: ShellRunner, agent: Agent) -> None:
    timer = threading.Timer(0.3, runner.abort)
    timer.start()
    begun = time.monotonic()
    with pytest.raises(InfrastructureError, match="session closed"):
        runner.run("sleep 9")
    assert time.monotonic() - begun < 3
    with pytest.raises(InfrastructureError):
        runner.run("sleep 9")
    runner.rearm()
    assert runner.run("echo again").output == "again\n"
    assert living(agent.uid) == []


def test_a_command_with_nul_is_the_clients_mistake(runner: ShellRunner) -> None:
    with pytest.raises(RequestError):
        runner.run("echo \0")


def test_a_missing_workspace_is_our_failure(runner: ShellRunner, workspace: Path) -> None:
    workspace.rmdir()
    with pytest.raises(InfrastructureError):
        runner.run("true")


def test_input_is_given_and_read_only_to_its_process(runner: ShellRunner) -> None:
    result = runner.execute(["/bin/cat"], timeout_s=5, stdin=b"hidden " * 40_000)
    assert result.output.endswith("hidden ")
    assert "bytes of output cut" in result.output


def test_no_descriptor_or_zombie_is_left(runner: ShellRunner) -> None:
    runner.run("true")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(50):
        runner.run("sleep 0 & true")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_refuses_to_kill_as_root() -> None:
    with pytest.raises(InfrastructureError, match="root"):
        kill_all(0, Reaper())


def test_the_server_is_root_again_after_killing(agent: Agent) -> None:
    kill_all(agent.uid, Reaper())
    assert (os.getuid(), os.geteuid()) == (0, 0)
    with Path("/proc/self/status").open() as status:
        uids = next(line for line in status if line.startswith("Uid:"))
    assert uids.split()[1:] == ["0"] * 4


def test_no_shared_memory_outlives_its_command(runner: ShellRunner, agent: Agent) -> None:
    program = "import ctypes; print(ctypes.CDLL(None).shmget(0, 1 << 20, 0o1600))"
    assert int(runner.run(f"/usr/bin/python3 -c '{program}'").output) >= 0
    assert owned("shm", agent.uid) == []


def test_what_is_done_to_the_thread_that_acts_as_the_agent_goes_no_further(runner: ShellRunner, agent: Agent) -> None:
    """A process of the agent may signal a thread that has its UID, and make it slow."""
    received: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: received.append(number))

    def suffer() -> None:
        with as_user(agent.uid, agent.gid):
            os.setpriority(os.PRIO_PROCESS, 0, 19)
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    try:
        run_apart(suffer)
        assert runner.run("cut -d ' ' -f 19 /proc/self/stat; grep SigBlk /proc/self/status").output.split() == [
            "0", "SigBlk:", "0" * 16,
        ]  # fmt: skip
        assert received == []
    finally:
        signal.signal(signal.SIGTERM, before)


def test_what_fails_apart_is_raised() -> None:
    with pytest.raises(InfrastructureError, match="as root"):
        run_apart(lambda: as_user(0).__enter__())
