"""A vendored curriculum: other bytes, another interface and anything undetermined are refused before a build."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from pipeline.adapters.vendored import examine_vendored
from pipeline.derive.vendored import MAX_MODULE_BYTES, check_vendored, make_vendored_entry
from pipeline.errors import ConfigError, HostileInputError, IntegrityError
from pipeline.model.release import VendoredCurriculum
from pipeline.suites.workflow_spec import recorded_cases

MODULE = (Path(__file__).resolve().parents[1] / "golden" / "vendored_curriculum.py").read_bytes()


def spec_of(raw: bytes) -> VendoredCurriculum:
    return VendoredCurriculum(
        repository="https://example.org/curricula",
        revision="0123456789abcdef0123456789abcdef01234567",
        path="curriculum.py",
        source="vendored/curriculum.py",
        licence="Apache-2.0",
        sha256=hashlib.sha256(raw).hexdigest(),
    )


def test_the_module_that_was_named_is_taken_byte_for_byte() -> None:
    check_vendored(MODULE, spec_of(MODULE))
    entry = make_vendored_entry(MODULE)
    assert (entry.path, entry.data, entry.mode, entry.uid) == ("opt/arena/workflow/vendored.py", MODULE, 0o600, 0)


@pytest.mark.parametrize("changed", [MODULE + b"\n", MODULE[:-1], MODULE.replace(b"0.8", b"0.9"), b""])
def test_changed_bytes_are_refused(changed: bytes) -> None:
    with pytest.raises(IntegrityError, match="says") as failure:
        check_vendored(changed, spec_of(MODULE))
    assert failure.value.where == "vendored/curriculum.py"


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (b"def grade(", b"def score(", "grade"),
        (b"def make_task(", b"def make(", "make_task"),
        (b"TASK_IDS =", b"TASKS =", "TASK_IDS"),
        (b"def make_task(task_id, seed, difficulty):", b"def make_task(task_id):", "make_task"),
        (b"def grade(task, answer):", b"def grade(task, answer, mode):", "grade"),
        (b"def grade(task, answer):", b"def grade(task, answer, *, mode):", "grade"),
        (b"def grade(task, answer):", b"if True:\n  def grade(task, answer):", "grade"),
        (b"def grade(task, answer):", b"async def grade(task, answer):", "grade"),
    ],
)
def test_another_interface_is_refused(old: bytes, new: bytes, what: str) -> None:
    raw = MODULE.replace(old, new)
    with pytest.raises(ConfigError, match=what):
        check_vendored(raw, spec_of(raw))


@pytest.mark.parametrize(
    "raw", [b"\x00", b"def", b"\xff\xfe", b"(" * 5000, b"#" * (MAX_MODULE_BYTES + 1), b"1" + b"+1" * 200_000]
)
def test_what_is_no_module_is_refused_without_being_run(raw: bytes) -> None:
    with pytest.raises(HostileInputError):
        check_vendored(raw, spec_of(raw))


def test_checking_runs_nothing(tmp_path: Path) -> None:
    raw = MODULE + f"\nopen({str(tmp_path / 'ran')!r}, 'w')\n".encode()
    check_vendored(raw, spec_of(raw))
    assert not (tmp_path / "ran").exists()


def test_examining_gives_every_case_with_its_answer() -> None:
    cases = examine_vendored(MODULE, "module")
    assert len(cases) == 8
    assert cases[0].id == "letter_counts-d1-s101"
    assert set(json.loads(cases[0].answer)) == {"letters", "longest", "total", "even", "sorted"}
    recorded = recorded_cases({case.id: case.answer for case in cases}, {case.id: case.family for case in cases})
    assert [(case.components, case.hollow) for case in recorded] == [(5, True)] * 8


def without_reference(raw: bytes) -> bytes:
    """The reference function gives the expected answer."""
    return raw.replace(
        b"    words, numbers = json.loads", b"    return task['expected']\n    words, numbers = json.loads"
    )


UNDETERMINED = {
    "hash order": (b'"longest": max(words),', b'"longest": max(words) + str(hash("x")),'),
    "random state": (b"random.Random(f", b"random.Random(None and f"),
    "clock": (b'"total": sum(numbers),', b'"total": __import__("time").time_ns(),'),
    "call order": (b'"total": sum(numbers),', b'"total": CALLS.append(1) or len(CALLS),'),
}


@pytest.mark.parametrize("kind", UNDETERMINED)
def test_what_is_not_deterministic_is_refused(kind: str) -> None:
    old, new = UNDETERMINED[kind]
    raw = MODULE.replace(old, new).replace(b"TASK_IDS =", b"CALLS = []\nTASK_IDS =")
    raw = raw.replace(
        b"    words, numbers = json.loads", b"    return task['expected']\n    words, numbers = json.loads"
    )
    with pytest.raises(IntegrityError, match="not deterministic"):
        examine_vendored(raw, "module")


FAILING = {
    "raises": (b"    source =", b"    raise ValueError\n    source ="),
    "memory": (b"    source =", b"    held = bytearray(4 << 30)\n    source ="),
    "forks": (b"    source =", b"    import os; os.fork() and os._exit(7)\n    source ="),
    "exits": (b"TASK_IDS =", b"import sys; sys.exit(9)\nTASK_IDS ="),
    "output": (b'"longest": max(words),', b'"longest": "x" * (6 << 20),'),
    "files": (b"    source =", b"    [open('/dev/null') for _ in range(99)] and None\n    source ="),
}


@pytest.mark.parametrize("kind", FAILING)
def test_what_fails_or_breaks_a_limit_is_refused(kind: str) -> None:
    old, new = FAILING[kind]
    raw = MODULE.replace(old, new)
    if kind == "output":
        raw = raw.replace(
            b"    words, numbers = json.loads", b"    return task['expected']\n    words, numbers = json.loads"
        )
    if kind == "files":
        raw = raw.replace(b"[open(", b"HELD = [open(").replace(b" and None", b"")
    with pytest.raises(HostileInputError):
        examine_vendored(raw, "module")


UNSERVABLE = {
    "wrong reference": (b"not sum(numbers) & 1", b"sum(numbers) & 1 == 1"),
    "two files": (b', "limits.json": b"{}\\n"', b""),
    "path": (b'"limits.json"', b'"../limits.json"'),
    "empty prompt": (b'    prompt = f"#', b'    prompt = "" and f"#'),
    "few components": (b"numbers),\n    }\n    files", b"numbers),\n    }\n    expected = {1: 1}\n    files"),
    "generous": (b"if set(right) - {\"even\"} else 0.0", b"if set(right) - {\"even\"} else 0.5"),
    "task id": (b'"letter_counts"', b'"letter/counts"'),
    "no tasks": (b'TASK_IDS = ("letter_counts", "number_pairs")', b"TASK_IDS = ()"),
}  # fmt: skip


@pytest.mark.parametrize("kind", UNSERVABLE)
def test_what_the_image_cannot_serve_is_refused(kind: str) -> None:
    old, new = UNSERVABLE[kind]
    raw = MODULE.replace(old, new)
    assert raw != MODULE
    if kind == "few components":
        raw = raw.replace(
            b"    words, numbers = json.loads", b"    return task['expected']\n    words, numbers = json.loads"
        )
    with pytest.raises(ConfigError):
        examine_vendored(raw, "module")


def test_it_runs_without_the_environment_and_its_prints_go_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "planted")
    spy = b'print("noise")\nimport os\nassert "SECRET_TOKEN" not in os.environ\nTASK_IDS ='
    assert len(examine_vendored(MODULE.replace(b"TASK_IDS =", spy), "module")) == 8


def test_it_runs_without_root_and_without_network() -> None:
    interfaces = '{line.split(":")[0].strip() for line in open("/proc/self/net/dev") if ":" in line}'
    spy = b"import os\nassert os.getuid() != 0\n"
    if os.geteuid() == 0:
        spy += f'assert {interfaces} == {{"lo"}}\n'.encode()
    assert len(examine_vendored(MODULE.replace(b"TASK_IDS =", spy + b"TASK_IDS ="), "module")) == 8
