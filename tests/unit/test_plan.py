"""The plan is a value: what would be built, from what, under which name, without an engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.config import load_release
from pipeline.errors import ConfigError
from pipeline.plan import make_plan, render_plan

ROOT = Path(__file__).parents[2]
RELEASE = load_release(ROOT / "release.yaml")


def test_local_target_rebuilds_the_repair_and_derives_software_from_it() -> None:
    plan = make_plan(RELEASE, None)

    assert plan.target_name == "local"
    repair, software = plan.image("format-code-task-000666"), plan.image("software")
    assert (repair.base_kind, software.base_kind) == ("recipe", "image")
    assert repair.layers == ("runtime", "server", "task")
    assert software.base == "format-code-task-000666"
    assert software.base_commit == repair.base_commit
    assert str(software.reference) == "127.0.0.1:5710/releases/software:2026-10-12"


def test_production_pins_the_repair_and_keeps_one_repository_with_a_tag_an_image() -> None:
    plan = make_plan(RELEASE, "ghcr")

    repair, software = plan.image("format-code-task-000666"), plan.image("software")
    assert repair.base_kind == "pinned"
    assert repair.layers == ()
    assert repair.base.endswith("@sha256:2031f3313b3a94474fcb8f9d0b2d416eb0bb86346dd32d8dbf177384c7a681c9")
    assert str(software.reference) == "ghcr.io/akseljoonas/mimo-openenv-software:software-2026-10-12"


def test_unknown_target_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="no target 'gchr'") as caught:
        make_plan(RELEASE, "gchr")
    assert "did you mean 'ghcr'?" in str(caught.value)


def test_what_is_printed_names_images_layers_suites_policies_and_identity() -> None:
    text = render_plan(make_plan(RELEASE, None))

    for expected in (
        "release 2026-10-12 on target 'local'",
        "software: Procedural data-workflow cases over OpenEnv",
        "base:     image format-code-task-000666 of this release",
        "adds:     workflow",
        "suite 'workflow'",
        "no-future-history",
        "signed by https://local-sigstore.test/publisher",
    ):
        assert expected in text
