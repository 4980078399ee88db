"""A reset discards everything: the workspace is its snapshot, and two episodes cannot tell each other anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from pydantic import JsonValue

from pipeline.suites.repair_spec import Facts, RepairSpec, inspect, make_scenario
from pipeline.suites.scenario import Bench, Observation, Scenario
from pipeline.suites.scriptfile import load_scripts
from pipeline.suites.workflow_player import Player

_FINGERPRINT = (
    "(ls -lAR --time-style=+ /tmp /var/tmp /dev/shm /dev/mqueue /run/lock /home 2>&1 | grep -v ^total; "
    "cat /proc/sysvipc/* | wc -l; git status --porcelain --ignored; git config -l | sort; "
    "find . -path ./.git -prune -o -printf '%p %m %s %l\\n' | sort) | sha256sum"
)
_IPC = (
    'python3 -c "import ctypes\nlibc = ctypes.CDLL(None)\n'
    'print(min(libc.shmget(77, 4096, 0o1777), libc.msgget(77, 0o1777), libc.semget(77, 1, 0o1777)) >= 0)"'
)
_IPC_LEFT = "tail -q -n +2 /proc/sysvipc/shm /proc/sysvipc/msg /proc/sysvipc/sem | wc -l"
_LOCK = 'python3 -c \'import fcntl, time; f = open(".git/HEAD"); fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB); '


def reset_scenario(spec: RepairSpec) -> Scenario:
    """Tricks against the restore, one episode each."""
    facts: Facts = (
        ("first", "after a first reset the workspace is the snapshot", []),
        *((trick.name, f"a reset undoes {trick.text}", []) for trick in load_scripts("trick")),
    )
    return make_scenario(spec, "reset", facts, _observe_tricks)


def _observe_tricks(spec: RepairSpec, bench: Bench, player: Player) -> Iterator[Observation]:
    player.reset()
    yield "first", inspect(bench, "compare", spec.cwd)
    for trick in load_scripts("trick"):
        player.reset()
        player.shell(trick.action(spec.test_paths[0]))
        begun = player.reset()
        yield trick.name, inspect(bench, "compare", spec.cwd) if begun.kind == "observation" else begun.output


def traces_scenario(spec: RepairSpec) -> Scenario:
    """Places and kernel objects outside the workspace."""
    facts: Facts = (
        ("places", "every place that the agent can write is empty after a reset", []),
        ("known-places", "the places are the usual ones and the home", True),
        ("loose-files", "no single file outside the workspace can be written by the agent", []),
        ("ipc", "System V shared memory, queues and semaphores are gone", ["True\n", "0\n"]),
        ("queue", "POSIX message queues are gone", "0\n"),
        ("home", "dot files of the home are gone, and its mode is as before", "0\n700\n"),
        ("locks", "a file lock is free again", "free\n"),
        ("fingerprint", "two episodes see the same, to the last name, mode and size", True),
    )
    return make_scenario(spec, "trace", facts, _observe_traces)


def _observe_traces(spec: RepairSpec, bench: Bench, player: Player) -> Iterator[Observation]:
    first = (player.reset(), player.shell(_FINGERPRINT).output)[1]
    writable = inspect(bench, "places", spec.cwd)
    assert isinstance(writable, dict)
    places = [str(place) for place in cast(list[str], writable["folders"])]
    names = " ".join(places)
    player.shell(f"for d in {names}; do echo x > $d/.trace; mkdir -p $d/sub/deep; ln -s /etc $d/link; done; true")
    player.shell("python3 -c \"import ctypes\nctypes.CDLL('librt.so.1').mq_open(b'/trace', 0o102, 0o666, None)\"")
    made = player.shell(_IPC).output
    player.shell("echo 'export X=1' > ~/.bashrc; echo '[a] b = c' > ~/.gitconfig; mkdir ~/.config; chmod 777 ~")
    player.reset()
    yield "places", _left_in(player, names)
    yield "known-places", {"/tmp", "/var/tmp", "/dev/shm", "/home/arena-agent"} <= set(places)  # noqa: S108
    yield "loose-files", writable["files"]
    yield "ipc", [made, player.shell(_IPC_LEFT).output]
    yield "queue", player.shell("ls -A /dev/mqueue 2>/dev/null | wc -l").output
    yield "home", player.shell("ls -A ~ | wc -l; stat -c %a ~").output
    player.shell(_LOCK + "time.sleep(20)' & sleep 0.3")
    yield "locks", player.shell(_LOCK + 'print("free")\'').output
    player.reset()
    yield "fingerprint", first == player.shell(_FINGERPRINT).output


def _left_in(player: Player, names: str) -> JsonValue:
    listed = player.shell(f"for d in {names}; do ls -A $d/.trace $d/sub $d/link; done 2>/dev/null").output
    return [line for line in listed.split("\n") if line]
