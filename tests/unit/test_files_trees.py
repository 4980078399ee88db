"""Folders that are replaced as a whole, and what killed writers leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import files
from pipeline.errors import StorageError
from pipeline.files import PARTIAL_PREFIX, remove_partials, remove_tree, replace_tree


def content(folder: Path) -> dict[str, bytes]:
    """Every file below, by relative path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_is_made_and_then_replaced_whole(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "evidence"
    replace_tree(folder, {"a": b"1", "b/c": b"2"})
    assert content(folder) == {"a": b"1", "b/c": b"2"}
    replace_tree(folder, {"b/c": b"3"})
    assert content(folder) == {"b/c": b"3"}
    assert [path.name for path in folder.parent.iterdir()] == ["evidence"]


def test_the_name_is_never_absent_while_it_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "evidence"
    replace_tree(folder, {"a": b"old"})
    seen: list[dict[str, bytes]] = []
    exchange = files._exchange

    def watched(first: Path, second: Path) -> None:
        seen.append(content(second))
        exchange(first, second)
        seen.append(content(second))

    monkeypatch.setattr(files, "_exchange", watched)
    replace_tree(folder, {"a": b"new"})
    assert seen == [{"a": b"old"}, {"a": b"new"}]


def test_a_write_that_fails_leaves_the_old_folder(tmp_path: Path) -> None:
    folder = tmp_path / "evidence"
    replace_tree(folder, {"a": b"old"})
    with pytest.raises((OSError, StorageError)):
        replace_tree(folder, {"a": b"new", "x" * 300: b"too long a name"})
    assert content(folder) == {"a": b"old"}
    assert [path.name for path in tmp_path.iterdir()] == ["evidence"]


def test_partials_are_swept_files_and_folders_alike(tmp_path: Path) -> None:
    (tmp_path / f"{PARTIAL_PREFIX}new-1-x" / "deep").mkdir(parents=True)
    (tmp_path / f"{PARTIAL_PREFIX}abc").write_bytes(b"half")
    (tmp_path / "kept").write_bytes(b"whole")
    assert remove_partials(tmp_path) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_link_is_removed_and_what_it_points_to_stays(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    remove_tree(tmp_path / "link")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "target" / "file").read_bytes() == b"x"
