"""What was attested before publication beside what was seen after the pull: checks, their report, scans of layers."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.model.attestation import ScannedLayer, ScanResult, TestResult
from pipeline.model.digest import digest_of, hex_of
from pipeline.model.evidence import Agreement, Disagreement
from pipeline.model.finding import CheckReport
from pipeline.model.record import canonical_json
from pipeline.ports import Attested
from pipeline.scan.record import ImageScan

ABSENT = "absent"


def compare_runs(image: str, checks: Attested, scan: Attested, after: CheckReport, seen: ImageScan) -> Agreement:
    """Both runs of an image; `checks` and `scan` are verified attestations, `after` and `seen` are of the pull."""
    attested = TestResult.model_validate_json(canonical_json(checks.predicate))
    return Agreement(
        image=image,
        before_passed=len(attested.passed_tests),
        before_failed=len(attested.failed_tests),
        after_passed=len(after.results) - len(after.failed),
        after_failed=len(after.failed),
        disagreements=(*_compare_checks(attested, after), *_compare_scans(scan, seen)),
    )


def scanned_layers(scan: ImageScan) -> tuple[ScannedLayer, ...]:
    """A scan's layers as an attestation states them, bottom first."""
    return tuple(
        ScannedLayer(
            digest=layer.layer,
            entries=layer.entries,
            unpacked_bytes=layer.unpacked_bytes,
            archives=layer.archives,
            git_stores=layer.git_stores,
            git_objects=layer.objects_seen,
            git_objects_allowed=layer.objects_allowed,
            findings=layer.leaks,
        )
        for layer in scan.layers
    )


def _compare_checks(attested: TestResult, after: CheckReport) -> tuple[Disagreement, ...]:
    before = dict.fromkeys(attested.passed_tests, "pass") | dict.fromkeys(attested.failed_tests, "fail")
    now = {result.id: "pass" if result.outcome == "pass" else "fail" for result in after.results}
    different = sorted(check for check in before.keys() | now.keys() if before.get(check) != now.get(check))
    if different:
        return tuple(
            Disagreement(check=check, before=before.get(check, ABSENT), after=now.get(check, ABSENT))
            for check in different
        )
    # outcomes are the same: statements, expected and observed values are so as well, or the report was edited
    reports = [each.digest["sha256"] for each in attested.configuration if each.digest]
    report = hex_of(digest_of(after.to_bytes()))
    if report in reports:
        return ()
    return (Disagreement(check="the whole report", before=", ".join(reports) or ABSENT, after=report),)


def _compare_scans(scan: Attested, seen: ImageScan) -> Iterator[Disagreement]:
    attested = ScanResult.model_validate_json(canonical_json(scan.predicate))
    result = "FAILED" if seen.leaks or not seen.layers else "PASSED"
    if attested.result != result:
        yield Disagreement(check="the scan", before=attested.result, after=result)
    now = scanned_layers(seen)
    if [layer.digest for layer in attested.layers] != [layer.digest for layer in now]:
        yield Disagreement(check="the layers scanned", before=_names(attested.layers), after=_names(now))
        return
    for was, layer in zip(attested.layers, now, strict=True):
        if was != layer:
            yield Disagreement(check=f"the scan of {layer.digest}", before=_describe(was), after=_describe(layer))


def _names(layers: tuple[ScannedLayer, ...]) -> str:
    return ", ".join(layer.digest for layer in layers)


def _describe(layer: ScannedLayer) -> str:
    return (
        f"{layer.entries} entries, {layer.unpacked_bytes} bytes, {layer.archives} archives, {layer.git_stores} stores, "
        f"{layer.git_objects} objects, {layer.git_objects_allowed} allowed, {layer.findings} findings"
    )
