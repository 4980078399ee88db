"""tasks.jsonl and provenance.json follow from evidence: digests, records, sources, and what nobody recorded is null."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pipeline.model.digest import digest_of
from pipeline.report.documents import make_release_documents, names_evidence, record_digests
from tests.fakes.documented import EVIDENCE, LIMITS, REVISION, ROOT, documents_of, facts_of

GOLDEN = Path(__file__).parents[1] / "golden" / "documents"


def lines(name: str, target: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in documents_of(name, target)["tasks.jsonl"].splitlines()]


def test_every_document_names_the_evidence() -> None:
    documents = documents_of("five-repairs")
    assert sorted(documents) == [
        "admission.json", "arena-limits.json", "provenance.json", "submission.json", "tasks.jsonl",
    ]  # fmt: skip
    for name in ("admission.json", "provenance.json", "submission.json", "tasks.jsonl"):
        assert names_evidence(documents[name], EVIDENCE), name
    assert documents["arena-limits.json"] == LIMITS


def test_tasks_are_the_golden_ones_byte_for_byte() -> None:
    assert documents_of("five-repairs")["tasks.jsonl"] == (GOLDEN / "tasks.jsonl").read_bytes()


def test_a_task_that_we_built_names_our_record_base_and_revision() -> None:
    repair = lines("thirty-four-tasks", "local")[8]
    record = ROOT / "images/mimo/tasks/format-code-task-000666/record.json"
    assert repair["ordinal"] == 8
    assert "sha256:" + repair["record_sha256"] == digest_of(record.read_bytes())
    assert repair["source_image"] == f"127.0.0.1:5710/bases/task@sha256:{'1' * 64}"
    assert repair["source_revision"] == REVISION
    assert repair["budgets"]["verifier_wall_s"] == 600
    assert repair["image"].startswith("127.0.0.1:5710/releases/format-code-task-000666@sha256:")


def test_a_case_has_no_record() -> None:
    case = lines("thirty-four-tasks", "local")[0]
    assert (case["task_id"], case["record_sha256"]) == ("software_change-d1-s101", None)


def test_a_pinned_task_says_what_its_publisher_recorded_and_null_for_the_rest() -> None:
    found = {line["task_id"][-6:]: line for line in lines("five-repairs", "ghcr")}
    known = found["000666"]
    assert known["record_sha256"] == "e3b09ca80d91baef357d840a87c5c20294a398912bdd36465ef1851e3fa53c91"
    assert known["source_image"].endswith("b23a0ff9eb97a0c35f128f161cb86fb49f40f78a5607fa3c7d380b3e475c1bf2")
    assert known["source_revision"] == "c72c7536d677a9b56282b584f023c003200f8338"
    assert (found["001926"]["source_image"], found["001457"]["record_sha256"]) == (None, None)


def test_on_production_our_own_record_is_not_taken_for_the_published_one() -> None:
    repair = lines("thirty-four-tasks", "ghcr")[8]
    assert repair["record_sha256"] == "e3b09ca80d91baef357d840a87c5c20294a398912bdd36465ef1851e3fa53c91"


def test_records_lie_under_their_task_byte_for_byte() -> None:
    facts = facts_of("thirty-four-tasks", "local")
    assert sorted(record_digests(facts)) == ["format-code-task-000666", "format-code-task-001926"]
    records = {"format-code-task-000666": b'{"a":  1}\r\n'}
    documents = make_release_documents(facts, EVIDENCE, records, LIMITS)
    assert documents["tasks/format-code-task-000666.json"] == b'{"a":  1}\r\n'


def test_provenance_has_all_images_with_the_attested_predicate_whole() -> None:
    facts = facts_of("thirty-four-tasks", "local")
    document = json.loads(documents_of("thirty-four-tasks", "local")["provenance.json"])
    assert [image["image_id"] for image in document["images"]] == [image.id for image in facts.images]
    for shown, image in zip(document["images"], facts.images, strict=True):
        assert shown["provenance"] == image.attestations["provenance"].predicate
        assert shown["layers"] == [layer.digest for layer in image.manifest.view.layers]
        assert shown["config_digest"] == image.config.digest
        assert shown["pinned"] is False
    software = document["images"][-1]
    assert len(software["task_ids"]) == 32


def test_the_same_evidence_gives_the_same_bytes() -> None:
    assert documents_of("thirty-four-tasks", "local") == documents_of("thirty-four-tasks", "local")
