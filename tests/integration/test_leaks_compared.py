"""The two common rules beside this scan: which kinds of leak each of them misses. `-s` prints the table."""

from __future__ import annotations

from pathlib import Path

import pytest

import tests.fakes.leak_kinds  # noqa: F401  (registers the kinds)
from tests.fakes.common_rules import finds_by_refs, finds_by_time, unpack
from tests.fakes.leaks import LEAKS, World, git, make_image

BY_REFS = {"future branch", "packed future branch", "stash"}


def test_what_the_common_rules_miss(tmp_path: Path) -> None:
    rows = {}
    for number, kind in enumerate(sorted(LEAKS)):
        folder = tmp_path / str(number)
        folder.mkdir()
        world = World(folder)
        image = make_image(LEAKS[kind](world).layers)
        repository = unpack(image, folder / "root")
        rows[kind] = (finds_by_refs(repository, world), finds_by_time(repository))
    print("\nkind of leak                              refs    time    this scan")
    for kind, (refs, time) in rows.items():
        print(f"{kind:40}  {_word(refs):6}  {_word(time):6}  found")
    assert {kind for kind, (refs, _) in rows.items() if refs} == BY_REFS
    found_by_time = {kind for kind, (_, time) in rows.items() if time}
    assert found_by_time <= BY_REFS | {"reflog"}
    assert len(rows) - len(found_by_time | BY_REFS) >= 20


def test_a_rule_by_time_takes_a_late_ancestor_for_the_future_and_misses_an_early_one(tmp_path: Path) -> None:
    world = World(tmp_path)
    git(world.source, "checkout", "-q", "v4")
    git(world.source, "commit", "-q", "--allow-empty", "-m", "back-port with an early clock", at=10)
    git(world.source, "branch", "early")
    git(world.source, "checkout", "-q", "main")
    git(world.source, "reset", "-q", "--hard", "v4")
    git(world.source, "tag", "-d", "v5", "v6")
    for path in (world.source / ".git/logs").rglob("*"):
        if path.is_file():
            path.unlink()
    assert not finds_by_time(world.source)
    assert finds_by_refs(world.source, world)


def _word(found: bool) -> str:
    return "found" if found else "missed"


@pytest.fixture(autouse=True)
def _quiet_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
