"""report.html: the same bytes always, under 1 MB whatever a release holds, and all facts in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.model.evidence import Disagreement
from pipeline.model.release import PolicyException
from pipeline.report.changes import compare_releases
from pipeline.report.facts import ReleaseFacts
from pipeline.report.page import MAX_PAGE_BYTES, render_page
from pipeline.scan.record import Leak
from tests.fakes.html import Node, read_page
from tests.fakes.reported import (
    DEBIAN,
    RECORDS,
    REPOSITORY,
    RUNTIME,
    check,
    checks,
    component,
    components,
    dependencies,
    image,
    layer,
    policy,
    release,
    verdict,
)

ROOT = Path(__file__).parents[2]


def page_of(facts: ReleaseFacts) -> Node:
    return read_page(render_page(facts))


def section(page: Node, name: str) -> Node:
    return page.one("section", id=name)


def test_the_verdict_comes_first() -> None:
    page = page_of(release())
    assert page.one("h1").text == "Release 2026-10-12 on local passes"
    assert next(page.all("section")).attributes["id"] == "verdict"
    assert "✓ Every check passed" in section(page, "verdict").text
    assert "private Sigstore" in section(page, "verdict").text
    assert "Not performed: admission, training, private evaluation." in section(page, "verdict").text


def test_a_release_that_does_not_pass_says_why() -> None:
    different = Disagreement(check="repair.x.y", before="pass", after="fail")
    failing = image("software", results=checks(24, failing=3), disagreements=(different,))
    page = page_of(release(failing, verdicts=(verdict("no-fixtures", "fail"),)))
    assert page.one("h1").text.endswith("DOES NOT PASS")
    said = section(page, "verdict").text
    for reason in ("3 checks did not pass", "1 difference between", "policy no-fixtures: fail: a fixture at /opt"):
        assert reason in said


def test_every_fact_of_an_image_is_there() -> None:
    facts = release(image("software", labels={"org.opencontainers.image.source": "https://example.org/source"}))
    text = section(page_of(facts), "images").text
    shown = facts.images[0]
    for fact in (
        shown.manifest.digest,
        shown.config.digest,
        shown.pull.reference,
        shown.asked.base,
        f"{shown.manifest.compressed_bytes:,}",
        "24 passed",
        "https://example.org/source",
        "2026-10-12T08:00:00Z",
    ):
        assert fact in text


def test_each_attestation_has_its_command() -> None:
    facts = release()
    of_release, *commands = [node.text for node in section(page_of(facts), "images").all("pre")]
    assert of_release.startswith("cosign verify-blob-attestation --type ")
    assert f"--digest {facts.images[0].manifest.digest[7:]} --digestAlg sha256" in of_release
    assert len(commands) == len(facts.images[0].attestations)
    assert commands[0].startswith("cosign verify --certificate-identity https://github.com/example/project/")
    assert all(command.endswith(facts.images[0].pull.reference) for command in commands)
    assert all("--trusted-root trusted_root.json --use-signed-timestamps" in command for command in commands)


def test_failed_checks_are_open_with_expected_and_observed() -> None:
    failed = check(3, outcome="fail")
    page = page_of(release(image("software", results=(check(1), failed))))
    folds = [fold for fold in section(page, "checks").all("details") if "open" in fold.attributes]
    assert len(folds) == 1
    row = next(row for row in folds[0].all("tr") if failed.id in row.text)
    assert [cell.text for cell in row.all("td")] == [
        "✗ fail",
        '{"reply": "observation", "reward": 0.0, "text": ""}',
        '"connection closed "',
    ]


def test_a_pass_shows_both_values_where_their_text_differs() -> None:
    whole = check(1).model_copy(update={"expected": 2, "observed": 2.0})
    same = check(14)
    page = page_of(release(image("software", results=(whole, same))))
    rows = {row.text: [cell.text for cell in row.all("td")] for row in section(page, "checks").all("tr")}
    assert ["✓ pass", "2", "2.0"] in rows.values()
    assert ["✓ pass", "4"] in rows.values()


def test_layers_are_drawn_to_one_scale_and_told_apart_without_colour() -> None:
    facts = release(image("small", (DEBIAN,)), image("large", (DEBIAN, layer("more", DEBIAN[1] * 3))))
    part = section(page_of(facts), "layers")
    bars = list(part.all("svg"))
    widths = [
        [float(rect.attributes["width"][:-1]) for rect in bar.all("rect") if "x" in rect.attributes] for bar in bars
    ]  # type: ignore[index]
    assert widths == [[25.0], [25.0, 75.0]]
    assert [[label.text for label in bar.all("text")] for bar in bars] == [["1"], ["1", "2"]]
    assert bars[1].one("title").text == "Layers of large by size"
    assert "2 layers, 1 of them shared: 1 (212,480,311 bytes), 2 (637,440,933 bytes)." in bars[1].one("desc").text
    assert len(list(part.all("pattern"))) == 1


def test_an_image_without_layers_and_one_with_a_foreign_history_are_drawn() -> None:
    odd = image("odd", ())
    assert "odd: 0 bytes" in section(page_of(release(odd)), "layers").text


def test_what_changed_is_there_and_the_first_release_says_that_it_is() -> None:
    old = release(image("software", packages=[component("bash", "1")]), date="2026-09-28")
    new = release(image("software", packages=[component("bash", "2")]))
    changed = section(read_page(render_page(new, compare_releases(old, new))), "changes").text
    assert "deb bash" in changed
    assert "No difference in: signing, images, sizes, layers, licences, checks, policies." in changed
    assert "no earlier release" in section(page_of(new), "changes").text


def test_policies_show_rationale_exceptions_and_findings() -> None:
    exception = PolicyException(
        digest="sha256:" + "2" * 64, owner="release manager", reason="cannot be rebuilt", expires="2026-12-31"
    )
    facts = release(
        policies=(policy("p", exceptions=(exception,)),),
        verdicts=(verdict("p", "excepted").model_copy(update={"exceptions": (exception,)}),),
    )
    page = page_of(facts)
    text = section(page, "policies").text
    for fact in ("! excepted", "still shipped", "release manager", "cannot be rebuilt", "2026-12-31", "a fixture"):
        assert fact in text
    assert "excepted until 2026-12-31 by release manager" in section(page, "verdict").text


def test_provenance_scan_packages_and_state_are_there() -> None:
    leak = Leak(layer=REPOSITORY[0], path="a/b.pack", kind="future", reach="buried", how="by commit", count=34_791)
    facts = release(image("software", packages=components(8), inputs=dependencies(3), leaks=(leak,)))
    page = page_of(facts)
    assert "lib2_1.2_amd64.deb" in section(page, "provenance").text
    assert "https://example.org/build-type#layers-v1" in section(page, "provenance").text
    assert "34,791" in section(page, "scan").text
    assert all(layer[0] in section(page, "scan").text for layer in (DEBIAN, RUNTIME, REPOSITORY, RECORDS))
    assert "Apache-2.0 WITH LLVM-exception" in section(page, "packages").text
    assert "○ not performed" in section(page, "state").text


def large() -> ReleaseFacts:
    packages, inputs = components(600), dependencies(600)
    return release(
        image("format-code-task-000666", results=checks(1_300), packages=packages, inputs=inputs),
        image("software", (DEBIAN, RUNTIME), checks(1_300, "workflow"), packages, inputs),
    )


def test_two_images_of_1300_checks_and_600_packages_fit_with_every_check_and_package() -> None:
    text = render_page(large())
    assert len(text.encode()) < MAX_PAGE_BYTES
    assert all(result.id in text for shown in large().images for result in shown.checks.results)
    assert all(each["name"] in text for each in components(600))


def test_long_values_are_cut_and_the_cut_says_what_is_missing_and_where_it_is() -> None:
    long = check(1).model_copy(update={"expected": "x" * 20_000, "observed": "x" * 20_000})
    text = section(page_of(release(image("software", results=(long,)))), "checks").text
    assert '"' + "x" * 399 + "… [19,602 more characters in images/software/checks-after.json]" in text


def test_2600_long_values_still_fit_and_each_check_is_listed() -> None:
    results = checks(1_300, text="long " * 400)
    text = render_page(release(image("a", results=results), image("b", results=results)))
    assert len(text.encode()) < MAX_PAGE_BYTES
    assert all(result.id in text for result in results)
    assert "more characters in images/a/checks-after.json]" in text


def test_what_cannot_fit_is_counted_not_dropped() -> None:
    many = checks(1_300, failing=900, text="long " * 100)
    facts = release(*(image(f"image-{index}", (DEBIAN, layer(str(index), index)), many) for index in range(32)))
    text = render_page(facts)
    assert len(text.encode()) < MAX_PAGE_BYTES
    checks_text = section(read_page(text), "checks").text
    assert "more rows are in images/image-31/checks-after.json." in checks_text
    assert "did not pass: 900" in checks_text
    assert all(shown.manifest.digest in text for shown in facts.images)


@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_same_facts_are_the_same_bytes_in_another_process(seed: str) -> None:
    program = "import hashlib; from tests.unit.test_report_page import digest_of_large; print(digest_of_large())"
    command = [sys.executable, "-c", program]
    environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": "Asia/Kathmandu", "LC_ALL": "C", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
    assert done.stdout.strip() == digest_of_large()


def digest_of_large() -> str:
    """Of a page with changes."""
    import hashlib

    old = release(image("software", packages=components(500)), date="2026-09-28")
    return hashlib.sha256(render_page(large(), compare_releases(old, large())).encode()).hexdigest()
