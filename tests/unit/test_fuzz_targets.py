"""The fuzz targets as ordinary tests: every seed is read, and what they run on is what the pipeline runs on."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TARGETS = sorted(path.stem for path in (ROOT / "tests/fuzz").glob("*_reader*.py"))


def stanzas(lock: Path) -> dict[str, str]:
    """Each requirement of a lock with its hashes."""
    parts = lock.read_text().replace("\n    ", " ").splitlines()
    return {part.partition("==")[0]: part for part in parts}


@pytest.mark.parametrize("target", TARGETS)
def test_every_seed_is_read(target: str) -> None:
    module = importlib.import_module(f"tests.fuzz.{target}")
    assert len(module.SEEDS) >= 4
    for seed in module.SEEDS:
        module.read(seed)


def test_every_target_is_run() -> None:
    listed = (ROOT / "tests/fuzz/__main__.py").read_text()
    assert len(TARGETS) == 5
    assert all(f'"{target}"' in listed for target in TARGETS)


def test_the_lock_has_the_versions_of_the_pipeline() -> None:
    own, whole = stanzas(ROOT / "tests/fuzz.lock"), stanzas(ROOT / "requirements.lock")
    assert own.pop("atheris").count("--hash=sha256:") == 3
    assert own == {name: whole[name] for name in ("isal", "zstandard")}
