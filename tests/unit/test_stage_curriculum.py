"""A vendored curriculum from image.yaml to evidence: its bytes, licence and origin, or a refusal before any work."""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.adapters.vendored import examine_vendored
from pipeline.config import load_release
from pipeline.errors import ConfigError, HostileInputError, IntegrityError, PipelineError
from pipeline.plan import render_plan
from pipeline.stages.records import load_built
from pipeline.stages.suites import make_scenarios
from tests.fakes.release import REPAIR, ROOT, WORKFLOW, TinyWorld, copy_world, edit_yaml

MODULE = (ROOT / "tests" / "golden" / "vendored_curriculum.py").read_bytes()
SOURCE = "vendored/curriculum.py"
IDS = tuple(f"{family}-d{d}-s{s}" for family in ("letter_counts", "number_pairs") for d in (1, 2) for s in (101, 307))
REVISION = "0123456789abcdef0123456789abcdef01234567"


def vendor(root: Path, raw: bytes = MODULE, **changes: str) -> Path:
    """Write the module beside the workflow image and name it there; returns its path."""
    folder = root / "images" / WORKFLOW
    (folder / SOURCE).parent.mkdir(exist_ok=True)
    (folder / SOURCE).write_bytes(raw)
    named = {
        "repository": "https://example.org/curricula", "revision": REVISION, "path": "lib/curriculum.py",
        "source": SOURCE, "licence": "MIT", "sha256": hashlib.sha256(raw).hexdigest(),
    }  # fmt: skip
    edit_yaml(folder / "image.yaml", lambda image: image.update(curriculum={**named, **changes}))
    return folder / SOURCE


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> TinyWorld:
    world = TinyWorld(tmp_path_factory.mktemp("vendored") / "release")
    vendor(world.root)
    world.build()
    return world


@pytest.fixture
def world(tmp_path: Path) -> TinyWorld:
    return TinyWorld(tmp_path / "release")


def test_the_module_is_a_layer_of_its_own_byte_for_byte_and_closed(template: TinyWorld) -> None:
    record, layout = load_built(template.paths, WORKFLOW)
    assert [layer.name for layer in record.layers if layer.origin == "added"][-2:] == ["workflow", "curriculum"]
    with layout.open(record.layers[-1].digest) as blob, tarfile.open(fileobj=blob) as tar:
        assert [(one.name, one.mode, one.uid) for one in tar if one.name != "opt"] == [
            ("opt/arena", 0o700, 0),
            ("opt/arena/workflow", 0o700, 0),
            ("opt/arena/workflow/vendored.py", 0o600, 0),
        ]
        held = tar.extractfile("opt/arena/workflow/vendored.py")
        assert held is not None
        assert held.read() == MODULE


def test_its_origin_and_licence_are_said_of_the_image(template: TinyWorld) -> None:
    folder = template.paths.built(WORKFLOW)
    provenance = json.loads((folder / "provenance.json").read_bytes())
    named = [one for one in provenance["buildDefinition"]["resolvedDependencies"] if one["name"] == "lib/curriculum.py"]
    assert named == [
        {
            "annotations": {"kind": "file", "version": REVISION},
            "digest": {"sha256": hashlib.sha256(MODULE).hexdigest()},
            "name": "lib/curriculum.py",
            "uri": f"git+https://example.org/curricula@{REVISION}#lib/curriculum.py",
        }
    ]
    components = json.loads((folder / "sbom.cdx.json").read_bytes())["components"]
    module = next(one for one in components if one["bom-ref"] == "vendored/opt/arena/workflow/vendored.py")
    assert module["licenses"] == [{"license": {"id": "MIT"}}]
    assert module["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(MODULE).hexdigest()}]
    other = json.loads((template.paths.built(REPAIR) / "sbom.cdx.json").read_bytes())["components"]
    assert not [one for one in other if one["bom-ref"].startswith("vendored/")]


def test_unchanged_it_is_not_built_again_and_the_evidence_names_its_tasks(template: TinyWorld, tmp_path: Path) -> None:
    built = copy_world(template, tmp_path / "release")
    assert [outcome.made for outcome in built.build()] == [False, False]
    built.publish()
    facts = built.verify()
    assert next(image.asked.task_ids for image in facts.images if image.id == WORKFLOW) == IDS
    built.review()


def test_a_denied_licence_is_refused(world: TinyWorld) -> None:
    vendor(world.root, licence="AGPL-3.0-only")
    edit_yaml(
        world.root / "policies" / "licence-allow-list.yaml",
        lambda policy: policy["parameters"].update(deny=["AGPL-3.0-only"]),
    )
    with pytest.raises(PipelineError, match="AGPL"):
        world.build()


def test_the_suite_plays_its_cases_with_its_answers(template: TinyWorld) -> None:
    scenarios = make_scenarios(_with_schema(template), template.plan.image(WORKFLOW), examine_vendored)
    ids = {statement.id for scenario in scenarios for statement in scenario.statements}
    assert {f"workflow.{case}.correct" for case in IDS} <= ids
    assert len(ids) > 300


def _with_schema(world: TinyWorld) -> Any:
    target = world.root / "policies" / "openenv-schema.json"
    target.write_bytes((ROOT / "policies" / "openenv-schema.json").read_bytes())
    return world.plan


def test_the_plan_says_whose_cases_they_are(template: TinyWorld) -> None:
    text = render_plan(template.plan)
    assert f"lib/curriculum.py of https://example.org/curricula at {REVISION}, MIT" in text
    assert "adds:     workflow, curriculum" in text


COMPUTED = MODULE.replace(b'("letter_counts", "number_pairs")', b'tuple("letter_counts number_pairs".split())')


def test_computed_task_ids_need_a_list_beside_them(world: TinyWorld) -> None:
    module = vendor(world.root, COMPUTED)
    with pytest.raises(ConfigError, match="8 tasks, the release knows 0") as caught:
        world.build()
    assert "cases.json" in caught.value.remedy
    (module.parents[1] / "cases.json").write_text(json.dumps([{"id": name} for name in reversed(IDS)]))
    assert world.plan.image(WORKFLOW).source.task_ids == tuple(reversed(IDS))
    world.build()


def in_image_yaml(root: Path, key: str) -> str:
    lines = (root / "images" / WORKFLOW / "image.yaml").read_text().splitlines()
    return f"image.yaml:{1 + next(n for n, line in enumerate(lines) if line.strip().startswith(key + ':'))}"


@pytest.mark.parametrize(
    ("change", "key", "what"),
    [
        (lambda module: module.write_bytes(MODULE + b"\n"), "sha256", "has SHA-256"),
        (lambda module: module.unlink(), "source", "missing file"),
        (lambda module: (module.unlink(), module.mkdir()), "source", "not a file"),
    ],
)
def test_another_file_is_refused_with_its_place(
    world: TinyWorld, change: Callable[[Path], object], key: str, what: str
) -> None:
    change(vendor(world.root))
    with pytest.raises(ConfigError, match=what) as caught:
        load_release(world.release_path)
    assert caught.value.where.endswith(in_image_yaml(world.root, key))


def test_a_repair_takes_no_curriculum(world: TinyWorld) -> None:
    vendor(world.root)
    edit_yaml(world.root / "images" / WORKFLOW / "image.yaml", lambda image: image.update(suite="repair"))
    with pytest.raises(ConfigError, match="only an image of workflow cases"):
        load_release(world.release_path)


def replaced(old: bytes, new: bytes) -> bytes:
    assert MODULE.count(old) == 1
    return MODULE.replace(old, new)


@pytest.mark.parametrize(
    ("raw", "error", "what"),
    [
        (replaced(b"def grade(", b"def score("), ConfigError, "does not define grade"),
        (replaced(b"random.Random(f", b"random.Random(None and f"), IntegrityError, "not deterministic"),
        (
            replaced(b"    source = random", b"    raise SystemExit(3)\n    source = random"),
            HostileInputError,
            "failed",
        ),
        (replaced(b"    source = random", b"    return {}\n    source = random"), HostileInputError, "failed"),
        (b"def make_task(", HostileInputError, "not a Python module"),
    ],
)
def test_a_bad_module_is_refused_before_anything_is_made(
    world: TinyWorld, raw: bytes, error: type[PipelineError], what: str
) -> None:
    vendor(world.root, raw)
    with pytest.raises(error, match=what):
        world.build()
    assert (world.sources.made, world.registry.operations, world.examiner.examined) == (0, [], [])
    assert not world.paths.built(REPAIR).exists()


def test_bytes_that_change_after_the_plan_are_refused(world: TinyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    module = vendor(world.root)
    plan = world.plan
    monkeypatch.setattr(TinyWorld, "plan", plan)
    module.write_bytes(MODULE.replace(b"0.8", b"0.9"))
    with pytest.raises(IntegrityError, match="SHA-256"):
        world.build()
    assert not world.paths.built(REPAIR).exists()
