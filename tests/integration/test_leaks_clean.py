"""No false alarm: repositories of many shapes, and the scan's memory under a large blob."""

from __future__ import annotations

from pathlib import Path

import pytest

import tests.fakes.clean_shapes  # noqa: F401  (registers the shapes)
from tests.fakes.clean_shapes import SHAPES
from tests.fakes.leaks import make_image


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_a_clean_shape_has_no_finding(name: str, tmp_path: Path) -> None:
    made = SHAPES[name](tmp_path)
    scan, _ = make_image([made.items]).scan(made.rules)
    assert scan.leaks == ()
    if name != "empty repository":
        assert scan.layers[0].objects_seen == scan.layers[0].objects_allowed > 0


def test_there_are_twenty_shapes() -> None:
    assert len(SHAPES) >= 20
