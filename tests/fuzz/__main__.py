"""`python -m tests.fuzz [TARGET ...] [options of libFuzzer]`: fuzz the targets one after another.

Exit code 1 when any of them crashed; the input is kept under .pipeline/fuzz/<target>/, its trace in log.txt there.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.fuzz.one import FOLDER

TARGETS = ("tar_reader", "pack_reader", "index_reader", "pack_index_reader", "archive_readers")


def fuzz(target: str, options: list[str]) -> bool:
    """Whether the target survived; prints its executions, or its kept input and the end of its trace."""
    log_path = FOLDER / target / "log.txt"
    log_path.parent.mkdir(parents=True, exist_ok=True)
    with log_path.open("wb") as log:
        command = [sys.executable, "-m", "tests.fuzz.one", target, *options]
        code = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False).returncode
    text = log_path.read_text(errors="replace")
    executed = re.findall(r"^(?:stat::number_of_executed_units:\s*|#)(\d+)", text, re.M)
    print(f"{target}: {executed[-1] if executed else 0} executions, {'CRASHED' if code else 'no crash'}", flush=True)
    if code:
        kept = re.findall(rf"{re.escape(str(FOLDER / target))}/\S+", text)
        print(f"  input: {kept[-1] if kept else 'none'}; trace: {log_path}\n{text[-2000:]}", flush=True)
    return code == 0


def main(arguments: list[str]) -> int:
    """All targets, or those named."""
    Path(".pipeline").mkdir(mode=0o700, exist_ok=True)
    options = [argument for argument in arguments if argument.startswith("-")]
    named = [argument for argument in arguments if argument not in options]
    if unknown := set(named) - set(TARGETS):
        print(f"no such target: {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
        return 1
    survived = [fuzz(target, options) for target in named or TARGETS]  # every one, even after a crash
    return int(not all(survived))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
