"""What an agent can reach in the merged root, as the OCI specification merges layers."""

from __future__ import annotations

import pytest

from pipeline.scan.inventory import Inventory, Seen, load_inventory
from pipeline.scan.merged import MergedRoot

FOLDER, LINK, SYMLINK = "5", "1", "2"


def file(path: bytes, mode: int = 0o644, uid: int = 0, gid: int = 0, **more: object) -> Seen:
    return Seen(path, "file", mode, uid, gid, **more)  # type: ignore[arg-type]


def folder(path: bytes, mode: int = 0o755, uid: int = 0, gid: int = 0) -> Seen:
    return Seen(path, FOLDER, mode, uid, gid)


def classify(path: bytes, *layers: list[Seen], layer: int = 0) -> str:
    root = MergedRoot()
    for entries in layers:
        root.add_layer(entries)
    return root.classify(layer, path)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (file(b"d/f"), "reachable"),
        (file(b"d/f", 0o600), "protected"),
        (file(b"d/f", 0o600, uid=2000), "reachable"),
        (file(b"d/f", 0o000, uid=2000), "reachable"),
        (file(b"d/f", 0o640, gid=2000), "reachable"),
        (file(b"d/f", 0o600, gid=2000), "protected"),
        (file(b"d/f", 0o600, has_acl=True), "reachable"),
    ],
)
def test_modes_of_the_file(entry: Seen, expected: str) -> None:
    assert classify(b"d/f", [folder(b"d"), entry]) == expected


@pytest.mark.parametrize(
    ("above", "expected"),
    [
        (folder(b"d", 0o700), "protected"),
        (folder(b"d", 0o711), "reachable"),
        (folder(b"d", 0o744), "protected"),
        (folder(b"d", 0o700, uid=2000), "reachable"),
        (folder(b"d", 0o710, gid=2000), "reachable"),
        (Seen(b"d", SYMLINK, 0o777, link=b"e"), "reachable"),
    ],
)
def test_modes_of_the_folders_above(above: Seen, expected: str) -> None:
    assert classify(b"d/f", [above, file(b"d/f")]) == expected


def test_a_later_layer_can_open_or_lock_a_folder() -> None:
    assert classify(b"d/f", [folder(b"d", 0o700), file(b"d/f")], [folder(b"d", 0o755)]) == "reachable"
    assert classify(b"d/f", [folder(b"d"), file(b"d/f")], [folder(b"d", 0o700)]) == "protected"
    assert classify(b"d/f", [file(b"d/f")], [folder(b"", 0o700)]) == "protected"


@pytest.mark.parametrize(
    "later",
    [
        [file(b"d/.wh.f")],
        [file(b".wh.d")],
        [file(b"d/.wh..wh..opq")],
        [file(b"d/f")],
        [file(b"d")],
        [Seen(b"d", SYMLINK, 0o777, link=b"e")],
        [folder(b"d/f")],
        [folder(b"d"), file(b"d/new"), file(b"d/.wh..wh..opq")],
    ],
)
def test_what_buries(later: list[Seen]) -> None:
    assert classify(b"d/f", [folder(b"d"), file(b"d/f")], later) == "buried"


def test_what_does_not_bury() -> None:
    below = [folder(b"d"), file(b"d/f")]
    for later in ([folder(b"d")], [file(b"d/g")], [file(b"e/.wh.f")], [file(b"d/.wh.ff")], [file(b".wh..wh.plnk")]):
        assert classify(b"d/f", below, later) == "reachable"


def test_whiteouts_hide_lower_layers_only() -> None:
    own = [file(b"d/.wh..wh..opq"), file(b"d/f"), file(b"d/.wh.g"), file(b"d/g")]
    assert classify(b"d/f", [file(b"d/old")], own, layer=1) == "reachable"
    assert classify(b"d/g", [file(b"d/g")], own, layer=1) == "reachable"
    assert classify(b"d/old", [file(b"d/old")], own) == "buried"


def test_a_hard_link_outside_makes_it_reachable() -> None:
    locked = [folder(b"l", 0o700), file(b"l/f"), Seen(b"open", LINK, link=b"l/f")]
    assert classify(b"l/f", locked) == "reachable"
    assert classify(b"l/f", locked, [file(b".wh.open")]) == "protected"
    assert classify(b"l/f", locked, [file(b".wh.l")]) == "reachable"
    assert classify(b"l/f", [locked[0], file(b"l/f", 0o600), locked[2]]) == "protected"


def test_inventory_round_trip() -> None:
    rows = [
        file(b"\xff\n/f", 0o4755, 7, 1 << 31, has_acl=True, blob=b"b" * 32),
        Seen(b"l", LINK, 0o777, link=b"\xff"),
        Seen(b"odd", "other"),
        Seen(b"a.zip!/m", "content", blob=b"c" * 20),
    ]
    inventory = Inventory()
    for row in rows:
        inventory.add(row)
    assert list(load_inventory(inventory.to_text(), "test")) == rows
