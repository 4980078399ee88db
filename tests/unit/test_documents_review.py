"""Documents in an evidence folder: written by a verb, checked by a review, refused when stale, forged or foreign."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline import verbs_documents
from pipeline.__main__ import main
from pipeline.errors import IntegrityError, PipelineError, StageError
from pipeline.files import write_atomic
from pipeline.model.digest import digest_of
from pipeline.model.record import canonical_json
from pipeline.report.evidence import INDEX
from tests.fakes.documented import LIMITS
from tests.fakes.release import REPAIR, WORKFLOW, TinyWorld, copy_world, edit_yaml, snapshot
from tests.fakes.verbs import simulate

CASES = ["one", "two", "three"]
ORDER = [{"image": WORKFLOW, "ids": ["three"]}, {"image": REPAIR}, {"image": WORKFLOW, "ids": ["one", "two"]}]
LOG = b'{"step": 1, "rewards": [0, 1], "task_counter": 5}\n{"step": 3, "grad_norm": 0, "task_counter": 6}\n'


def write_inputs(root: Path) -> None:
    """What a release with tasks has beside what a tiny one has."""
    cases = json.dumps([{"id": case} for case in CASES]).encode()
    write_atomic(root / "images" / "workflow" / "cases.json", cases)
    write_atomic(root / "policies" / "arena-limits.json", LIMITS)
    edit_yaml(root / "release.yaml", lambda release: release.update(tasks=ORDER))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> TinyWorld:
    made = TinyWorld(tmp_path_factory.mktemp("documented") / "release")
    write_inputs(made.root)
    made.build()
    made.publish()
    assert made.verify().passed
    return made


@pytest.fixture
def tiny(template: TinyWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TinyWorld:
    made = copy_world(template, tmp_path / "release")
    monkeypatch.setattr(verbs_documents, "World", simulate(made))
    return made


@pytest.fixture
def documented(tiny: TinyWorld) -> Path:
    """The evidence folder with documents."""
    assert run(tiny, "documents") == 0
    return tiny.paths.evidence


def run(tiny: TinyWorld, verb: str, *arguments: str) -> int:
    environment: Mapping[str, str] = {}
    return main([verb, "--release", str(tiny.release_path), *arguments], environment)


def edit_json(path: Path, change: Callable[[Any], object]) -> None:
    document = json.loads(path.read_bytes())
    change(document)
    write_atomic(path, canonical_json(document))


def test_the_verb_writes_documents_and_says_what_the_consumer_would(
    tiny: TinyWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    before = snapshot(tiny.paths.evidence)
    assert run(tiny, "documents") == 0
    shown = capsys.readouterr().out
    assert "4 tasks; 30 rules of admission" in shown
    assert 'fails image_registries: ["127.0.0.1:' in shown
    assert "the consumer would not admit it as it is" in shown
    after = snapshot(tiny.paths.evidence)
    assert {name: data for name, data in after.items() if name in before} == before
    tasks = [json.loads(line) for line in after["documents/tasks.jsonl"].splitlines()]
    assert [task["task_id"] for task in tasks] == ["three", "lookup-1", "one", "two"]
    assert {task["evidence"] for task in tasks} == {digest_of(before[INDEX])}
    record = (tiny.root / "images/repair/tasks/lookup/record.json").read_bytes()
    assert after["documents/tasks/lookup-1.json"] == record
    assert "sha256:" + tasks[1]["record_sha256"] == digest_of(record)
    digests = json.loads(before[INDEX])["images"]
    assert [task["image"].rpartition("@")[2] for task in tasks[:2]] == [digests[WORKFLOW], digests[REPAIR]]


def test_writing_again_gives_the_same_bytes(tiny: TinyWorld, documented: Path) -> None:
    first = snapshot(documented)
    assert run(tiny, "documents") == 0
    assert snapshot(documented) == first


def test_a_review_counts_documents_and_needs_no_other_file(tiny: TinyWorld, documented: Path, tmp_path: Path) -> None:
    alone = Path(shutil.copytree(documented, tmp_path / "elsewhere"))
    found = tiny.review(alone)
    assert found.files == len(snapshot(alone)) - 1
    assert found.index == digest_of((alone / INDEX).read_bytes())


def test_later_edits_of_the_release_do_not_change_what_was_promised(tiny: TinyWorld, documented: Path) -> None:
    edit_yaml(tiny.release_path, lambda release: release["images"][0]["budgets"].update(memory_gib=8))
    write_atomic(tiny.root / "policies" / "arena-limits.json", LIMITS.replace(b'"tasks_max": 50', b'"tasks_max": 2'))
    assert tiny.review(documented).facts.passed


def test_a_flipped_bit_in_any_document_is_named(tiny: TinyWorld, documented: Path) -> None:
    write_log(tiny)
    assert run(tiny, "diagnose", str(tiny.root / "log")) == 0
    names = sorted(name for name in snapshot(documented) if name.startswith(("documents/", "training")))
    assert len(names) == 7
    for name in names:
        whole = (documented / name).read_bytes()
        for offset in sorted({0, len(whole) // 4, len(whole) // 2, len(whole) - 2, len(whole) - 1}):
            changed = bytearray(whole)
            changed[offset] ^= 1
            (documented / name).write_bytes(changed)
            with pytest.raises(PipelineError) as caught:
                tiny.review(documented)
            assert caught.value.exit_code in (3, 7), f"{name} at {offset}: {caught.value}"
            assert name in caught.value.where, f"{name} at {offset}: {caught.value}"
        (documented / name).write_bytes(whole)
    assert tiny.review(documented).facts.passed


def test_documents_of_other_evidence_are_refused(tiny: TinyWorld, documented: Path, tmp_path: Path) -> None:
    stale = shutil.copytree(documented / "documents", tmp_path / "stale")
    edit_yaml(tiny.release_path, lambda release: release.update(name="Another name"))
    tiny.verify()
    assert not (documented / "documents").exists(), "new evidence begins without documents"
    shutil.copytree(stale, documented / "documents")
    with pytest.raises(StageError, match="made from other evidence") as caught:
        tiny.review(documented)
    assert caught.value.where.startswith("documents/")
    assert caught.value.remedy == "run: nox -s documents"


def add_a_file(folder: Path) -> str:
    (folder / "documents" / "notes.md").write_text("by hand")
    return "documents/notes.md"


def add_a_record(folder: Path) -> str:
    (folder / "documents" / "tasks" / "one.json").write_text("{}")
    return "documents/tasks/one.json"


def drop_a_record(folder: Path) -> str:
    (folder / "documents" / "tasks" / "lookup-1.json").unlink()
    return "documents/tasks/lookup-1.json"


def drop_the_limits(folder: Path) -> str:
    (folder / "documents" / "arena-limits.json").unlink()
    return "documents/arena-limits.json"


def drop_the_tasks(folder: Path) -> str:
    (folder / "documents" / "tasks.jsonl").unlink()
    return "documents/tasks.jsonl"


def admit_by_hand(folder: Path) -> str:
    edit_json(folder / "documents" / "admission.json", lambda found: found.update(admissible=True, failed=[]))
    return "documents/admission.json"


def raise_a_budget(folder: Path) -> str:
    edit_json(folder / "documents" / "submission.json", lambda found: found["tasks"][0].update(memory_gib=15))
    return "documents/submission.json"


def loosen_the_limits(folder: Path) -> str:
    """With limits of their own, whose digest is written where it belongs: then the rest does not follow."""
    limits = LIMITS.replace(b'"ghcr.io"', b'"127.0.0.1:5880"')
    write_atomic(folder / "documents" / "arena-limits.json", limits)
    edit_json(folder / "documents" / "admission.json", lambda found: found.update(limits=digest_of(limits)))
    return "documents/admission.json"


def break_the_limits(folder: Path) -> str:
    limits = LIMITS.replace(b"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}", b"(a+)+b")
    write_atomic(folder / "documents" / "arena-limits.json", limits)
    edit_json(folder / "documents" / "admission.json", lambda found: found.update(limits=digest_of(limits)))
    return "documents/arena-limits.json"


def link_a_document(folder: Path) -> str:
    (folder / "documents" / "tasks.jsonl").rename(folder.parent / "tasks.jsonl")
    (folder / "documents" / "tasks.jsonl").symlink_to(folder.parent / "tasks.jsonl")
    return "documents/tasks.jsonl"


def plant_a_fifo(folder: Path) -> str:
    os.mkfifo(folder / "documents" / "pipe")
    return "documents/pipe"


def name_a_file_alike(folder: Path) -> str:
    (folder / "training-diagnosis.json.bak").write_text("{}")
    return "training-diagnosis.json.bak"


@pytest.mark.parametrize(
    "forge",
    [
        add_a_file, add_a_record, drop_a_record, drop_the_limits, drop_the_tasks, admit_by_hand, raise_a_budget,
        loosen_the_limits, break_the_limits, link_a_document, plant_a_fifo, name_a_file_alike,
    ],
)  # fmt: skip
def test_a_forgery_is_named(tiny: TinyWorld, documented: Path, forge: Callable[[Path], str]) -> None:
    name = forge(documented)
    with pytest.raises(IntegrityError) as caught:
        tiny.review(documented)
    assert name in caught.value.where


def test_documents_are_not_made_from_evidence_that_does_not_hold(
    tiny: TinyWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    edit_json(tiny.paths.evidence / "inputs.json", lambda inputs: inputs["images"][0]["budgets"].update(memory_gib=1))
    assert run(tiny, "documents") == 7
    assert "inputs.json" in capsys.readouterr().err
    assert not (tiny.paths.evidence / "documents").exists()


def test_a_record_that_was_changed_since_is_refused(tiny: TinyWorld, capsys: pytest.CaptureFixture[str]) -> None:
    record = tiny.root / "images/repair/tasks/lookup/record.json"
    record.write_bytes(record.read_bytes() + b" ")
    sha256 = digest_of(record.read_bytes())[7:]
    edit_yaml(record.with_name("task.yaml"), lambda task: task.update(record_sha256=sha256))
    assert run(tiny, "documents") == 3
    assert "the evidence is about another record of lookup-1" in capsys.readouterr().err


def write_log(tiny: TinyWorld, raw: bytes = LOG) -> str:
    write_atomic(tiny.root / "log", raw)
    return str(tiny.root / "log")


def test_a_diagnosis_names_log_evidence_and_tasks(
    tiny: TinyWorld, documented: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tiny, "diagnose", write_log(tiny)) == 0
    shown = capsys.readouterr().out
    assert "2 logged of 3; 1 unavailable" in shown
    assert "inferred: ordinal = task_counter modulo 4, in the order of tasks.jsonl" in shown
    found = json.loads((documented / "training-diagnosis.json").read_bytes())
    assert found["evidence"] == digest_of((documented / INDEX).read_bytes())
    assert found["log"] == digest_of(LOG)
    assert found["tasks_digest"] == digest_of((documented / "documents" / "tasks.jsonl").read_bytes())
    # 5 and 6 modulo 4
    assert [(one["task_id"], one["steps"]) for one in found["ordinals"]] == [
        ("three", 0), ("lookup-1", 1), ("one", 1), ("two", 0),
    ]  # fmt: skip
    files = len(snapshot(documented)) - 1
    assert tiny.review(documented).files == files


def test_a_diagnosis_without_documents_infers_from_a_stated_number_alone(tiny: TinyWorld) -> None:
    log, path = write_log(tiny), tiny.paths.evidence / "training-diagnosis.json"
    assert run(tiny, "diagnose", log) == 0
    assert json.loads(path.read_bytes())["mapping"]["basis"] == "unknown"
    assert run(tiny, "diagnose", log, "--tasks", "5") == 0
    found = json.loads(path.read_bytes())
    assert found["mapping"]["basis"] == "inferred"
    assert [(one["ordinal"], one["task_id"]) for one in found["ordinals"]] == [(0, None), (1, None)]


def test_a_diagnosis_of_other_tasks_is_refused(tiny: TinyWorld, documented: Path) -> None:
    assert run(tiny, "diagnose", write_log(tiny)) == 0
    path = documented / "training-diagnosis.json"
    for field in ("evidence", "tasks_digest"):
        kept = path.read_bytes()
        document = json.loads(kept)
        document.pop("content")
        document[field] = digest_of(b"another")
        document["content"] = digest_of(canonical_json(document))
        write_atomic(path, canonical_json(document))
        with pytest.raises(StageError if field == "evidence" else IntegrityError) as caught:
            tiny.review(documented)
        assert caught.value.where == "training-diagnosis.json"
        write_atomic(path, kept)


@pytest.mark.parametrize(("arguments", "code"), [(["--tasks", "0"], 64), (["--tasks", "10001"], 64)])
def test_a_number_of_tasks_that_is_none_is_refused(tiny: TinyWorld, arguments: list[str], code: int) -> None:
    assert run(tiny, "diagnose", write_log(tiny), *arguments) == code


def test_a_log_that_is_none_leaves_the_diagnosis_before(
    tiny: TinyWorld, documented: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tiny, "diagnose", write_log(tiny)) == 0
    before = (documented / "training-diagnosis.json").read_bytes()
    assert run(tiny, "diagnose", write_log(tiny, LOG + b"[]")) == 7
    assert "log:3" in capsys.readouterr().err
    assert run(tiny, "diagnose", str(tiny.root / "absent")) == 3
    assert "no such log" in capsys.readouterr().err
    assert (documented / "training-diagnosis.json").read_bytes() == before


def test_without_evidence_there_is_nothing_to_diagnose(tiny: TinyWorld, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(tiny.paths.evidence)
    for verb in (["documents"], ["diagnose", write_log(tiny)]):
        assert run(tiny, *verb) == 3
        assert "not an evidence folder" in capsys.readouterr().err
