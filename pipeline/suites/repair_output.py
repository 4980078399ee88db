"""Output and limits of a command: the tail, code points, bytes that are no text, time, memory and disk."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from pipeline.suites.repair_spec import Facts, RepairSpec, make_scenario
from pipeline.suites.scenario import Bench, Observation, Scenario
from pipeline.suites.workflow_player import Player, Reply

LIMIT_BYTES = 12_000
TIMEOUT_S, TIMED_OUT = 60, 124
_CHARACTERS = ("a", "é", "€", "😀")
_MEMORY_GROWTH_BYTES = 16 << 20


def output_scenario(spec: RepairSpec) -> Scenario:
    """Short commands."""
    facts: Facts = (
        ("nothing", "a command that prints nothing gives an empty output", ["", 0]),
        ("interleaved", "standard output and error come interleaved, as written", "1\n2\n3\n4\n"),
        ("exit-code", "the exit code is the command's", 7),
        ("signal", "a command that ends by a signal gives 128 and its number", 137),
        ("closed", "a command that closes its output goes on to its end", ["", 0, "late\n"]),
        ("input", "a command that reads its input gets its end at once", ["0\n", 0]),
        ("exact", f"{LIMIT_BYTES} bytes come whole", True),
        ("one-more", f"of {LIMIT_BYTES + 1} bytes the end comes, with the number of cut bytes before it", True),
        *((f"code-points-{n}", f"no character of {n} bytes is split, at every offset around the limit", [])
          for n in (1, 2, 3, 4)),
        ("binary", "bytes that are no text are replaced, within the limit", True),
        ("zeros", "NUL characters come through", "a\0b"),
        ("flood", "of 300 MB of output the end comes", True),
        ("disk", "a command cannot write a file of more than 10 GiB, and fails alone", [True, "alive\n"]),
    )  # fmt: skip
    return make_scenario(spec, "output", facts, _observe)


def _observe(spec: RepairSpec, bench: Bench, player: Player) -> Iterator[Observation]:
    player.reset()
    yield "nothing", _both(player.shell("true"))
    yield "interleaved", player.shell("echo 1; echo 2 >&2; echo 3; echo 4 >&2").output
    yield "exit-code", player.shell("exit 7").observation.get("exit_code")
    yield "signal", player.shell("kill -9 $$").observation.get("exit_code")
    closed = player.shell("exec >&- 2>&-; sleep 0.3; echo late > /tmp/late")
    yield "closed", [*_both(closed), player.shell("cat /tmp/late").output]
    yield "input", _both(player.shell("wc -c"))
    yield "exact", player.shell(f"head -c {LIMIT_BYTES} /dev/zero | tr '\\0' x").output == "x" * LIMIT_BYTES
    more = player.shell(f"head -c {LIMIT_BYTES + 1} /dev/zero | tr '\\0' x")
    yield "one-more", _is_cut(more, LIMIT_BYTES + 1, "x")
    for size, character in enumerate(_CHARACTERS, 1):
        yield f"code-points-{size}", _split_offsets(player, character)
        player.reset()
    binary = player.shell('python3 -c "import sys; sys.stdout.buffer.write(bytes(range(128, 256)) * 200)"').output
    yield "binary", "\ufffd" in binary and len(binary.encode()) <= LIMIT_BYTES
    yield "zeros", player.shell("printf 'a\\0b'").output
    yield "flood", _is_cut(player.shell("head -c 300000000 /dev/zero | tr '\\0' x"), 300_000_000, "x")
    big = player.shell("truncate -s 11G big || python3 -c \"open('big', 'wb').truncate(11 << 30)\"")
    yield "disk", [big.observation.get("exit_code") != 0, player.shell("echo alive").output]


def endless_scenario(spec: RepairSpec) -> Scenario:
    """Commands that do not end."""
    facts: Facts = (
        ("yes", f"endless output is ended after {TIMEOUT_S} s with exit code {TIMED_OUT} and a line that says so",
         [TIMED_OUT, True, True]),
        ("yes-memory", "the container's memory hardly grows by it", True),
        ("deaf", "nothing is left of it although all of it ignores signals", 0),
        ("after", "the episode goes on after that", "alive\n"),
    )  # fmt: skip
    return make_scenario(spec, "endless", facts, _observe_endless, alone=True)


def _observe_endless(spec: RepairSpec, bench: Bench, player: Player) -> Iterator[Observation]:
    player.reset()
    player.shell("head -c 30000000 /dev/zero")
    before = bench.container.memory_bytes()
    # one minute for both: output without end, by processes that ignore every signal that can be ignored
    reply = player.shell("trap '' TERM INT HUP QUIT PIPE; yes & while :; do sleep 5; done")
    yield "yes", [reply.observation.get("exit_code"), "60 s" in reply.output[-200:], _fits(reply)]
    yield "yes-memory", bench.container.memory_bytes() - before <= _MEMORY_GROWTH_BYTES
    yield "deaf", int(player.shell("cat /proc/[0-9]*/comm 2>/dev/null | grep -cxE 'yes|sleep'").output)
    yield "after", player.shell("echo alive").output


def _both(reply: Reply) -> list[JsonValue]:
    return [reply.output, reply.observation.get("exit_code")]


def _fits(reply: Reply) -> bool:
    return len(reply.output.encode()) <= LIMIT_BYTES


def _is_cut(reply: Reply, total_bytes: int, character: str) -> bool:
    """Whether the output is a line that states the cut and then the end, and the numbers add up."""
    line, _, end = reply.output.partition("\n")
    cut = next((int(word) for word in line.strip("[]").split() if word.isdigit()), -1)
    whole = set(end) == {character} and len(end.encode()) > LIMIT_BYTES - 200
    return whole and _fits(reply) and cut == total_bytes - len(end.encode())


def _split_offsets(player: Player, character: str) -> list[JsonValue]:
    """Lengths of ASCII before a long run of the character for which the output is no exact end of what was written."""
    wrong: list[JsonValue] = []
    count = LIMIT_BYTES // len(character.encode()) + 40
    for before in range(12):
        program = (
            f"import sys; sys.stdout.buffer.write((chr(98) * {before} + chr({ord(character)}) * {count}).encode())"
        )
        reply = player.shell(f'python3 -c "{program}"')
        if not _is_cut(reply, before + count * len(character.encode()), character):
            wrong.append(before)
    return wrong
