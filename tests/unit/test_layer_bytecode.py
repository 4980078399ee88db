"""Bytecode by the driver, run here by this Python: the same bytes from every process, and hostile sources noted."""

from __future__ import annotations

import importlib.util
import marshal
import struct
import subprocess
import sys
from pathlib import Path

from pipeline.embedded.bytecode import ImagePython, _answers, _request

ROOT = Path(__file__).parents[2]
DRIVER = ROOT / "pipeline/embedded/bytecode_driver.py"
SOURCES = {f"/lib/{path.name}": path.read_bytes() for path in sorted((ROOT / "pipeline/embedded").glob("*.py"))}
HOSTILE = {
    "/lib/syntax.py": b"def f(:\n",
    "/lib/null.py": b"x = 1\0",
    "/lib/encoding.py": b"# coding: no-such-encoding\n",
    "/lib/deep.py": b"x = " + b"(" * 3_000 + b")" * 3_000,
    "/lib/deeper.py": b"x = " + b"-" * 100_000 + b"1",
    "/lib/expensive.py": b"x = " + b"+".join(b"a" for _ in range(60_000)),
}


def run(
    sources: dict[str, bytes], seed: str = "0", environment: dict[str, str] | None = None, cwd: str = "/"
) -> list[tuple[int, bytes]]:
    stdin = b"".join(_request(path.encode(), source) for path, source in sources.items())
    command = [sys.executable, "-s", "-S", "-P", "-B", str(DRIVER)]
    env = {"PYTHONHASHSEED": seed, **(environment or {})}
    done = subprocess.run(command, input=stdin, env=env, cwd=cwd, capture_output=True, check=True)
    return list(zip(*_answers(done.stdout, len(sources)), strict=True))


def test_processes_with_other_environments_folders_and_orders_agree(tmp_path: Path) -> None:
    first = dict(zip(SOURCES, run(SOURCES), strict=True))
    turned = dict(reversed(SOURCES.items()))
    second = dict(
        zip(
            turned,
            run(turned, environment={"HOME": "/x" * 90, "Entry": "Entry", "LANG": "C"}, cwd=str(tmp_path)),
            strict=True,
        )
    )
    assert first == second
    assert {status for status, _ in first.values()} == {0}


def test_one_file_alone_and_after_others_is_the_same() -> None:
    whole = dict(zip(SOURCES, run(SOURCES), strict=True))
    for path in ("/lib/debian.py", "/lib/wheels.py"):
        assert run({path: SOURCES[path]}) == [whole[path]]


def test_it_is_unchecked_hash_bytecode_of_the_source() -> None:
    ((status, content),) = run({"/lib/a.py": b"x = 41 + 1\n"})
    assert status == 0
    assert content[:4] == importlib.util.MAGIC_NUMBER
    assert struct.unpack("<I", content[4:8]) == (1,)
    assert content[8:16] == importlib.util.source_hash(b"x = 41 + 1\n")
    code, names = marshal.loads(content[16:]), {}
    assert code.co_filename == "/lib/a.py"
    exec(code, names)
    assert names["x"] == 42


def test_hostile_sources_are_noted_and_the_others_are_compiled() -> None:
    answers = run({**HOSTILE, "/lib/good.py": b"x = 1\n"})
    statuses = dict(zip([*HOSTILE, "/lib/good.py"], (status for status, _ in answers), strict=True))
    assert statuses["/lib/good.py"] == 0
    for path in ("/lib/syntax.py", "/lib/null.py", "/lib/encoding.py", "/lib/deep.py"):
        assert statuses[path] == 1
    assert answers[0][1].startswith(b"SyntaxError")


def test_a_source_does_not_run() -> None:
    ((status, _),) = run({"/lib/a.py": b"raise SystemExit(3)\n"})
    assert status == 0


def test_the_interpreter_gets_nothing_of_the_callers_environment() -> None:
    command = ImagePython(Path("/r"), "3.11").command(["x.py"])
    assert command[:2] == ["/usr/bin/env", "-i"]
    assert "PYTHONHASHSEED=0" in command
    assert command[-1] == "x.py"
    assert ImagePython(Path("/r"), "3.13").tag == "cpython-313"
