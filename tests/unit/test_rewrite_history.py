"""What the source knew of the future finds plain copies in an image that has no object of it any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.adapters.git import read_folder
from pipeline.derive.history import find_future
from pipeline.errors import IntegrityError
from pipeline.scan.rules import Rules
from tests.fakes.leaks import Item, World, git, make_image


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def rules(world: World) -> Rules:
    future = find_future(read_folder(world.source), world.base)
    return world.rules(future_objects=future.objects, fingerprints=future.fingerprints)


def test_the_future_is_what_the_base_does_not_reach(world: World) -> None:
    ids = git(world.source, "rev-list", "--objects", "--no-object-names", "--all", f"^{world.base}").decode().split()
    future = find_future(read_folder(world.source), world.base)
    assert future.objects == set(ids)
    assert {one.label.partition("@")[0] for one in future.fingerprints} >= {"future:lookup.py", "future:core.py"}
    assert "def lookup" not in repr(future)


def test_a_clean_image_passes_with_all_that_is_known(world: World) -> None:
    scan, _ = make_image(world.with_items()).scan(rules(world))
    assert scan.leaks == ()


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("var/lookup.py", lambda text: text),
        ("var/lookup.py.orig", lambda text: text.replace(b"\n", b"\r\n")),
        ("var/notes.txt", lambda text: b"See below.\n" + text[1000:2500]),
    ],
)
def test_plain_copies_are_found(world: World, path: str, change: object) -> None:
    copy = Item(path, change(world.future_text()))  # type: ignore[operator]
    scan, _ = make_image(world.with_items(copy)).scan(rules(world))
    assert {(leak.path, leak.kind) for leak in scan.leaks} == {(path, "future")}


def test_older_versions_of_a_file_are_not_the_future(world: World) -> None:
    old = git(world.source, "show", "v2:core.py")
    scan, _ = make_image(world.with_items(Item("var/core.py.old", old))).scan(rules(world))
    assert scan.leaks == ()


def test_a_base_that_is_not_there_is_an_error(world: World) -> None:
    with pytest.raises(IntegrityError, match="not in the repository"):
        find_future(read_folder(world.source), "0" * 40)
