"""What changed between two releases: each kind of difference alone, and nothing where there is none."""

from __future__ import annotations

import pytest

from pipeline.model.evidence import PreviousRelease
from pipeline.model.release import Identity
from pipeline.report.changes import Change, Changes, compare, compare_releases, count_kinds, render_changes
from pipeline.report.facts import ReleaseFacts
from pipeline.report.snapshot import take_snapshot
from tests.fakes.reported import (
    DEBIAN,
    IDENTITY,
    RECORDS,
    RUNTIME,
    check,
    checks,
    component,
    image,
    layer,
    policy,
    release,
    verdict,
)

OLD = "2026-09-28"
BASH, SSL = component("bash", "5.2-1", "deb", "GPL-3.0"), component("openssl", "3.0.1", "deb", "Apache-2.0")


def changes(old: ReleaseFacts, new: ReleaseFacts) -> Changes:
    return compare_releases(old, new)


def filled(found: Changes) -> set[str]:
    """Names of the groups that have a difference."""
    return {name for name, listed in found.groups if listed}


def test_a_release_and_itself_differ_in_nothing() -> None:
    found = changes(release(date=OLD), release())
    assert filled(found) == set()
    assert (found.old, found.new) == ("2026-09-28 on local", "2026-10-12 on local")


def test_a_layer_that_came_and_one_that_went_have_their_bytes_and_images() -> None:
    gone, new = layer("gone", 17_001), layer("new", 16_886)
    found = changes(release(image("a", (DEBIAN, gone)), date=OLD), release(image("a", (DEBIAN, new))))
    assert set(found.layers) == {
        Change("removed", gone[0], "17,001 bytes", "", ("a",)),
        Change("added", new[0], "", "16,886 bytes", ("a",)),
    }
    assert filled(found) == {"images", "sizes", "layers"}
    assert [change.what for change in found.images] == ["a"]


def test_sizes_count_shared_layers_once() -> None:
    old = release(image("a", (DEBIAN,)), image("b", (DEBIAN, RUNTIME)), date=OLD)
    new = release(image("a", (DEBIAN,)), image("b", (DEBIAN, RUNTIME, RECORDS)))
    by_name = {change.what: (change.before, change.after) for change in changes(old, new).sizes}
    once = (f"{DEBIAN[1] + RUNTIME[1]:,} bytes", f"{DEBIAN[1] + RUNTIME[1] + RECORDS[1]:,} bytes")
    assert by_name["all layers, counted once"] == once
    assert "a" not in by_name


def test_packages_come_go_and_move_per_image() -> None:
    newer = component("openssl", "3.0.2", "deb", "Apache-2.0")
    old = release(image("a", packages=[BASH, SSL]), image("b", packages=[SSL]), date=OLD)
    new = release(image("a", packages=[newer]), image("b", packages=[newer, BASH]))
    assert set(changes(old, new).packages) == {
        Change("changed", "deb openssl", "3.0.1", "3.0.2", ("a", "b")),
        Change("removed", "deb bash", "5.2-1", "", ("a",)),
        Change("added", "deb bash", "", "5.2-1", ("b",)),
    }


def test_a_package_without_a_version_still_comes_and_goes() -> None:
    found = changes(release(image("a"), date=OLD), release(image("a", packages=[component("x", "")])))
    assert found.packages == (Change("added", "deb x", "", "", ("a",)),)


def test_two_versions_of_one_package_are_one_line() -> None:
    both = [component("libgcc", "12"), component("libgcc", "13")]
    found = changes(release(image("a", packages=both[:1]), date=OLD), release(image("a", packages=both)))
    assert found.packages == (Change("changed", "deb libgcc", "12", "12, 13", ("a",)),)


def test_licences_that_are_new_or_gone_name_their_packages() -> None:
    new = [component(f"lib{index}", "1", "deb", "AGPL-3.0") for index in range(7)]
    found = changes(release(image("a", packages=[BASH]), date=OLD), release(image("a", packages=new)))
    assert Change("removed", "GPL-3.0", "bash", "") in found.licences
    assert Change("added", "AGPL-3.0", "", "lib0, lib1, lib2, lib3, lib4 and 2 more") in found.licences


def test_a_component_that_stops_stating_a_licence_shows() -> None:
    silent = component("bash", "5.2-1", "deb")
    found = changes(release(image("a", packages=[BASH]), date=OLD), release(image("a", packages=[silent])))
    assert [change.what for change in found.licences] == ["(states none)", "GPL-3.0"]


def test_checks_are_new_gone_or_of_another_outcome() -> None:
    old = release(image("a", results=(check(1), check(2), check(3))), date=OLD)
    new = release(image("a", results=(check(2, outcome="fail"), check(3), check(4))))
    names = {index: check(index).id for index in range(5)}
    assert set(changes(old, new).checks) == {
        Change("removed", names[1], "pass", "", ("a",)),
        Change("changed", names[2], "pass", "fail", ("a",)),
        Change("added", names[4], "", "pass", ("a",)),
    }


def test_the_contents_of_an_image_that_came_or_went_are_one_line() -> None:
    old = release(image("a"), image("gone", packages=[BASH], results=checks(30)), date=OLD)
    new = release(image("a"), image("new", packages=[BASH, SSL], results=checks(40)))
    found = changes(old, new)
    assert set(found.packages) == {
        Change("removed", "all of gone", "1 packages", "", ("gone",)),
        Change("added", "all of new", "", "2 packages", ("new",)),
    }
    assert [(each.kind, each.before or each.after) for each in found.checks] == [
        ("removed", "30 checks"),
        ("added", "40 checks"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("pass", "fail", Change("changed", "p", "pass", "fail")),
        ("excepted", "pass", Change("changed", "p", "excepted", "pass")),
    ],
)
def test_a_policy_of_another_verdict(old: str, new: str, expected: Change) -> None:
    before = release(policies=(policy("p"),), verdicts=(verdict("p", old),), date=OLD)
    after = release(policies=(policy("p"),), verdicts=(verdict("p", new),))
    assert changes(before, after).policies == (expected,)


def test_a_rule_that_was_loosened_shows_though_the_verdict_stays() -> None:
    before = release(policies=(policy("p"),), date=OLD)
    after = release(policies=(policy("p").model_copy(update={"parameters": {"refuse": []}}),))
    assert changes(before, after).policies == (Change("changed", "p", "pass", "pass (its rule changed)"),)


def test_policies_that_are_new_or_gone() -> None:
    found = changes(release(policies=(policy("a"),), date=OLD), release(policies=(policy("b"),)))
    assert found.policies == (Change("removed", "a", "pass", ""), Change("added", "b", "", "pass"))


def test_another_signing_identity_shows() -> None:
    other = Identity(subject="https://example.org/other", issuer=IDENTITY.issuer)
    found = changes(release(date=OLD), release(identity=other))
    assert found.signing == (Change("changed", "identity", IDENTITY.subject, other.subject),)


def test_the_snapshot_survives_its_record() -> None:
    facts = release(image("a", packages=[BASH, SSL], results=checks(50, failing=2)), image("b"), date=OLD)
    record = PreviousRelease(index="sha256:" + "1" * 64, snapshot=take_snapshot(facts))
    again = PreviousRelease.load(record.to_bytes(), "previous.json")
    assert compare(again.snapshot, take_snapshot(release())) == compare(record.snapshot, take_snapshot(release()))
    assert again == record


def test_the_snapshot_of_a_large_release_is_small() -> None:
    packages = [component(f"lib{index}", f"1.{index}", "deb", "MIT") for index in range(600)]
    facts = release(*(image(name, packages=packages, results=checks(1_300)) for name in "ab"))
    record = PreviousRelease(index="sha256:" + "1" * 64, snapshot=take_snapshot(facts))
    assert len(record.to_bytes()) < 250_000


def test_the_text_has_a_line_for_every_change_and_nothing_that_moves_a_terminal() -> None:
    hostile = component("evil\x1b[2J\u202ename", "1\n2")
    found = changes(release(image("a"), date=OLD), release(image("a", packages=[hostile])))
    text = render_changes(found)
    assert "packages: 1 added" in text
    assert "  + deb evil\\u{1b}[2J\\u{202e}name: 1\\u{a}2  [a]" in text
    assert "layers: no difference" in text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_kinds_are_counted_in_one_order() -> None:
    listed = [Change("changed", "x", "1", "2"), Change("removed", "y", "1", ""), Change("changed", "z", "1", "2")]
    assert count_kinds(listed) == "1 removed, 2 changed"
    assert count_kinds([]) == "no difference"
