"""Publishing while the log of a real private Sigstore is down: no tag without a budget, a release within one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.adapters.keyless import KeylessSigner, KeylessVerifier
from pipeline.errors import ServiceError
from pipeline.stages.records import has_record
from tests.fakes.release import DATE, REPAIR, WORKFLOW, TinyWorld, edit_yaml, make_tiny_release
from tests.fakes.sigstore_gate import FakeTime, Gate, gated

LOG = "/api/v1/log/entries"


class GatedWorld(TinyWorld):
    """A tiny release that signs through a gate; the rest is simulated, the clock too."""

    def __init__(self, root: Path, gate: Gate) -> None:
        self.gate, self.time = gate, FakeTime()
        make_tiny_release(root, issuer=gate.party.issuer)
        super().__init__(root)

    @property
    def signer(self) -> KeylessSigner:
        return self.gate.signer(self.plan.target.log_outage_budget_s, self.time)

    @property
    def verifier(self) -> KeylessVerifier:
        return self.gate.party.verifier()

    def allow(self, budget_s: int) -> None:
        def change(release: dict[str, Any]) -> None:
            release["targets"]["local"]["log_outage_budget_s"] = budget_s

        edit_yaml(self.release_path, change)

    def tags(self) -> set[str]:
        """Images, and the release, that have a dated tag."""
        names = (REPAIR, WORKFLOW, "release")
        return {name for name in names if DATE in self.registry.content.repository(f"releases/{name}").tags}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[GatedWorld]:
    with gated(tmp_path / "sigstore") as gate:
        made = GatedWorld(tmp_path / "release", gate)
        made.build()
        yield made


def test_without_a_budget_there_is_no_tag_and_the_step_is_named(world: GatedWorld) -> None:
    world.gate.plan[LOG] = [503] * 100
    with pytest.raises(ServiceError, match="1 attempts in a budget of 0 s: HTTP 503") as caught:
        world.publish()
    assert (caught.value.where, caught.value.exit_code) == ("log entry", 5)
    assert "publish again" in caught.value.remedy
    assert world.time.pauses == []
    assert world.tags() == set()
    assert not has_record(world.paths.published(REPAIR))
    world.gate.plan.clear()
    world.publish()
    assert world.tags() == {REPAIR, WORKFLOW, "release"}


def test_with_a_budget_it_waits_until_the_log_is_back(world: GatedWorld) -> None:
    world.allow(2700)
    world.gate.plan[LOG] = [503, 502, 503, 503]
    world.publish()
    assert world.time.pauses == [1, 2, 4, 8]
    assert world.tags() == {REPAIR, WORKFLOW, "release"}


def test_an_outage_that_is_longer_than_the_budget_ends_inside_it(world: GatedWorld) -> None:
    world.allow(300)
    world.gate.plan[LOG] = [503] * 1000
    with pytest.raises(ServiceError, match="in a budget of 300 s") as caught:
        world.publish()
    assert caught.value.where == "log entry"
    assert 60 < world.time.now_s <= 300
    assert world.tags() == set()


@pytest.mark.parametrize(("signed", "tags"), [(5, set()), (6, {REPAIR}), (12, {REPAIR, WORKFLOW})])
def test_a_log_that_goes_down_later_leaves_whole_images_and_no_other_tag(
    world: GatedWorld, signed: int, tags: set[str]
) -> None:
    answer = world.gate.answer

    def answer_some(path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        return (503, b"{}") if world.gate.seen.count(LOG) >= signed and path == LOG else answer(path, body, headers)

    world.gate.answer = answer_some  # type: ignore[method-assign]
    with pytest.raises(ServiceError):
        world.publish()
    assert world.tags() == tags
    world.gate.answer = answer  # type: ignore[method-assign]
    world.publish()
    assert world.tags() == {REPAIR, WORKFLOW, "release"}
    assert world.gate.seen.count(LOG) == 13, "nothing is signed twice"
