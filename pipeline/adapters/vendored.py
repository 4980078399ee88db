"""Runs a vendored curriculum outside any image: twice, with other hash seeds and in another order.

Where the pipeline is root it runs as nobody, without network if the machine allows; always with limits on time, memory,
output and descriptors, without environment and without site packages.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from pipeline.errors import ConfigError, HostileInputError, IntegrityError, ServiceError

TIMEOUT_S = 120
MAX_OUTPUT_BYTES = 16 << 20
_DRIVER = Path(__file__).with_name("vendored_driver.py")
_NOBODY = 65534
_CASE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,60}\.json")


@dataclass(frozen=True)
class VendoredCase:
    """One case: its family and the text of its right answer, which stays outside the image."""

    id: str
    family: str
    answer: str


def examine_vendored(raw: bytes, where: str) -> tuple[VendoredCase, ...]:
    """All cases of a module that `derive.vendored.check_vendored` has passed.

    IntegrityError when two runs differ, HostileInputError when it fails or breaks a limit, ConfigError when what it
    makes is not what the image can serve.
    """
    first, second = (_run(raw, where, seed, order) for seed, order in (("0", "forward"), ("4242", "backward")))
    if first != second:
        raise IntegrityError(
            "the vendored curriculum is not deterministic: two runs made different tasks",
            where=where,
            remedy="make_task must depend on its arguments alone",
        )
    try:
        cases = json.loads(first)
    except (ValueError, RecursionError) as error:
        raise HostileInputError("the vendored curriculum disturbed its own report", where=where) from error
    if not isinstance(cases, list) or not cases:
        raise ConfigError("the vendored curriculum has no tasks", where=where)
    return tuple(_load_case(case, where) for case in cases)


def _run(raw: bytes, where: str, hash_seed: str, order: str) -> bytes:
    command = [*_interpreter(where), "-c", _DRIVER.read_text(), order]
    with tempfile.TemporaryFile() as output:
        try:
            done = subprocess.run(
                command, input=raw, stdout=output, stderr=subprocess.DEVNULL, timeout=TIMEOUT_S, cwd="/",
                env={"PYTHONHASHSEED": hash_seed, "PATH": os.defpath}, start_new_session=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise HostileInputError(f"the vendored curriculum ran longer than {TIMEOUT_S} s", where=where) from error
        except OSError as error:
            raise ServiceError(f"the vendored curriculum could not be run: {error}", where=where) from error
        if done.returncode != 0:
            raise HostileInputError(
                f"the vendored curriculum failed with exit code {done.returncode}",
                where=where,
                remedy="run its make_task and grade by hand for every TASK_IDS, difficulty 1 and 2, seed 101 and 307",
            )
        output.seek(0)
        return output.read(MAX_OUTPUT_BYTES + 1)


def _interpreter(where: str) -> list[str]:
    """A command for an isolated Python without privileges; the system's where nobody cannot run this one."""
    prefix = _unprivileged()
    for python in (str(Path(sys.executable).resolve()), "/usr/bin/python3"):
        command = [*prefix, python, "-s", "-S", "-P", "-B"]
        if _succeeds([*command, "-c", "import json, resource"]):
            return command
    raise ServiceError(
        "no Python can be run without privileges, so the vendored curriculum cannot be examined",
        where=where,
        remedy="install python3 of the distribution, 3.11 or later",
    )


def _unprivileged() -> list[str]:
    """A prefix that gives up root (util-linux is essential on every Debian), and the network where root may do that."""
    if os.geteuid() != 0:
        return []
    alone = ["unshare", "--net", "--"]
    user = [f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"]
    drop = ["setpriv", *user, "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"]
    return [*(alone if _succeeds([*alone, "true"]) else []), *drop]


def _succeeds(command: list[str]) -> bool:
    try:
        return (
            subprocess.run(command, capture_output=True, cwd="/", env={"PATH": os.defpath}, timeout=30).returncode == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


def _load_case(case: dict[str, JsonValue], where: str) -> VendoredCase:
    name, files, answer = str(case["id"]), case["files"], case["answer"]
    place = f"{where}: {name}"
    if not _CASE_ID.fullmatch(name):
        raise ConfigError("a vendored task id is not acceptable", where=place)
    if not isinstance(files, dict) or len(files) != 3 or not all(map(_FILE_NAME.fullmatch, files)):
        raise ConfigError("a vendored task does not have exactly three JSON files", where=place)
    if not isinstance(case["prompt"], str) or not 0 < len(case["prompt"]) <= 12_000:
        raise ConfigError("a vendored task's prompt is not text of at most 12,000 characters", where=place)
    if not isinstance(answer, dict) or len(answer) < 4:
        raise ConfigError("a vendored task's answer is not an object of at least four components", where=place)
    if case["scores"] != [1.0, 1.0, 0.0]:
        raise ConfigError(
            f"the vendored grader gives {case['scores']} to the expected answer, the reference answer and no answer",
            where=place,
            remedy="they must be 1, 1 and 0",
        )
    return VendoredCase(name, str(case["family"]), json.dumps(answer))
