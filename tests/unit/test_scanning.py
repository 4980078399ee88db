"""The rules of a release are data in the repository: base commit, future objects, fixtures."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.config import load_release
from pipeline.errors import ConfigError
from pipeline.plan import make_plan
from pipeline.scan.record import LayerScan
from pipeline.stages.scanning import FolderCache, MemoryCache, load_future, make_rules, render_future

ROOT = Path(__file__).parents[2]
LAYER, RULES = "sha256:" + "1" * 64, "sha256:" + "2" * 64


def test_future_file_says_what_it_was_made_from() -> None:
    ids = frozenset({"a" * 40, "b" * 40, "c" * 64})
    assert load_future(render_future(ids), "future.txt") == ids


@pytest.mark.parametrize("line", ["A" * 40, "a" * 39, "HEAD", "a" * 40 + " x"])
def test_future_file_refuses_anything_but_object_ids(line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_future(f"# head\n{'a' * 40}\n{line}\n".encode(), "future.txt")
    assert "future.txt:3" in str(caught.value)


def test_a_derived_image_is_judged_by_the_future_of_the_task_below() -> None:
    plan = make_plan(load_release(ROOT / "release.yaml"), "local")
    repair, software = (make_rules(plan, plan.image(one)) for one in ("format-code-task-000666", "software"))

    assert software.future_objects == repair.future_objects
    assert len(repair.future_objects) == 40
    assert software.base_commits == repair.base_commits
    labels = {one.label for one in software.fingerprints}
    assert "software/fixtures/solvers/math_route.py" in labels
    assert "mimo/fixtures/format-code-task-000666/reference.patch" in labels


def test_a_pinned_image_is_judged_by_its_own_head() -> None:
    plan = make_plan(load_release(ROOT / "release.yaml"), "ghcr")
    rules = make_rules(plan, plan.image("format-code-task-000666"))
    assert rules.base_commits == ()
    assert rules.future_objects == frozenset()


def test_cache_gives_back_what_was_put_and_nothing_damaged(tmp_path: Path) -> None:
    cache = FolderCache(tmp_path)
    scan = LayerScan(
        layer=LAYER, diff_id=LAYER, compressed_bytes=1, unpacked_bytes=2, entries=3, archives=0, leaks=(),
        inventory="", graph="", scanner="x", rules=RULES,
    )  # fmt: skip
    assert cache.get(LAYER, RULES) is None
    cache.put(LAYER, RULES, scan.to_bytes())
    assert cache.get(LAYER, RULES) == scan.to_bytes()
    in_memory = MemoryCache()
    assert in_memory.get(LAYER, RULES) is None
    in_memory.put(LAYER, RULES, scan.to_bytes())
    assert in_memory.get(LAYER, RULES) == scan.to_bytes()
    next(tmp_path.iterdir()).write_bytes(scan.to_bytes()[:-9])
    assert cache.get(LAYER, RULES) is None
