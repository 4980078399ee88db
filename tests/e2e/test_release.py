"""A whole release out of a clone of this repository: real packages, engine, registry and Sigstore, as processes.

One test, since its steps build on one another. The clone has ports of its own, a workflow image with two cases, and a
repair image that is graded under the guard, which no released image is: there every cheat must score 0.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.embedded.leftovers import mounts_under
from pipeline.model.digest import digest_of, hex_of
from pipeline.model.finding import CheckReport
from pipeline.suites.scriptfile import load_scripts
from tests.fakes.release import edit_yaml
from tests.fakes.release import snapshot as files_of

ROOT = Path(__file__).parents[2]
PORT = 5740
CASES = 2
GUARDED = "format-code-task-000666"
TARGET = "local"
pytestmark = [pytest.mark.e2e, pytest.mark.services]


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=Test", "-c", "user.email=test@example.org", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def make_clone(folder: Path) -> Path:
    """A clone of the repository as it is in the work tree, with everything committed."""
    git(folder.parent, "clone", "--quiet", str(ROOT), str(folder))
    git(folder, "rm", "-r", "--quiet", ".")
    listed = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    for name in filter(None, listed):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    slim(folder)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "The work tree, with other ports and two cases")
    if (ROOT / ".pipeline" / "cache").is_dir():
        (folder / ".pipeline").mkdir(mode=0o700)
        ignored = shutil.ignore_patterns(".partial-*")
        shutil.copytree(ROOT / ".pipeline/cache", folder / ".pipeline/cache", ignore=ignored, copy_function=link)
    return folder


def link(source: str, destination: str) -> None:
    """What is cached is never changed in place, so a second name for it is enough."""
    try:
        Path(destination).hardlink_to(source)
    except OSError:
        shutil.copy2(source, destination)


def slim(folder: Path) -> None:
    """Other ports, the workflow image and its base alone, two cases and a policy that knows of it, and the guard."""

    def change(release: Any) -> None:
        local = release["targets"][TARGET]
        local["registry"] = f"127.0.0.1:{PORT}"
        local["identity"]["issuer"] = f"http://127.0.0.1:{PORT + 2}/oidc"
        [software] = [image for image in release["images"] if image["id"] == "software"]
        release["images"] = [i for i in release["images"] if i["id"] in ("software", software["base"])]
        for target in release["targets"].values():
            target["pinned"] = {k: v for k, v in target.get("pinned", {}).items() if k == software["base"]}

    edit_yaml(folder / "release.yaml", change)
    cases = folder / "images/software/cases.json"
    cases.write_text(json.dumps(json.loads(cases.read_text())[:CASES]))
    edit_yaml(folder / "policies/checks-agree.yaml", lambda policy: policy["parameters"]["minimum"].update(workflow=30))
    edit_yaml(folder / f"images/mimo/tasks/{GUARDED}/task.yaml", lambda task: task.update(guard="planted-hooks"))


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Path]:
    made = make_clone(tmp_path / "clone")
    yield made
    start(made, "down").communicate(timeout=120)


def start(clone: Path, *arguments: str, prefix: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    command = [*prefix, sys.executable, "-m", "pipeline", *arguments]
    return subprocess.Popen(command, cwd=clone, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(clone: Path, *arguments: str, code: int = 0, prefix: tuple[str, ...] = ()) -> str:
    """What the process printed; it must end with that exit code."""
    started = time.monotonic()
    with start(clone, *arguments, prefix=prefix) as process:
        output, error = process.communicate(timeout=600)
    print(f"{' '.join(arguments)}: {time.monotonic() - started:.1f} s")
    assert process.returncode == code, f"{arguments} exited {process.returncode}\n{output}\n{error}"
    assert "Traceback" not in error
    return output + error


def records(clone: Path, stage: str) -> dict[str, Any]:
    found = (clone / ".pipeline" / stage).glob(f"*/{TARGET}/*/record.json")
    return {path.parent.name: json.loads(path.read_bytes()) for path in found}


@pytest.mark.timeout(1500)
def test_a_release_from_a_clone_to_a_review(clone: Path) -> None:
    planned_images_are_built(clone)
    published_and_only_once(clone)
    evidence = verified_by_a_stranger(clone)
    reviewed_without_network(clone, evidence)
    nothing_is_done_twice(clone)
    a_tampered_blob_is_noticed(clone, evidence)
    an_interrupted_verify_leaves_nothing(clone, evidence)
    everything_is_gone_after_down(clone)


def planned_images_are_built(clone: Path) -> None:
    before = files_of(clone)
    plan = run(clone, "plan")
    assert files_of(clone) == before
    run(clone, "build")
    built = records(clone, "build")
    assert built
    for image, record in built.items():
        assert f"{image}: " in plan
        folder = clone / ".pipeline/build" / record["release"] / TARGET / image
        layout = json.loads((folder / "layout/index.json").read_bytes())
        assert [entry["digest"] for entry in layout["manifests"]] == [record["manifest_digest"]]
        checks = json.loads((folder / "checks.json").read_bytes())["results"]
        assert checks
        assert {check["outcome"] for check in checks} == {"pass"}
        assert json.loads((folder / "scan.json").read_bytes())["leaks"] == []
        sbom = json.loads((folder / "sbom.cdx.json").read_bytes())
        purls = [component.get("purl", "") for component in sbom["components"]]
        assert any(purl.startswith("pkg:deb/debian/") for purl in purls)
        assert any(purl.startswith("pkg:pypi/openenv") for purl in purls)
    guarded = clone / ".pipeline/build" / built[GUARDED]["release"] / TARGET / GUARDED
    every_cheat_scores_nothing(guarded / "checks.json")
    runtimes = {
        layer["digest"] for record in built.values() for layer in record["layers"] if layer["name"] == "runtime"
    }
    assert len(runtimes) == 1, "the runtime is one layer in every image"
    assert built["software"]["added_bytes"] < 20_000
    assert git(clone, "status", "--porcelain") == ""


def published_and_only_once(clone: Path) -> None:
    output = run(clone, "publish")
    published = records(clone, "publish")
    assert published.keys() == records(clone, "build").keys()
    for image, record in published.items():
        assert record["reference"].endswith(f"/{image}@{records(clone, 'build')[image]['manifest_digest']}")
        assert len({attestation["kind"] for attestation in record["attestations"]}) == 6
    assert output.count("6 attestations") == len(published)


def verified_by_a_stranger(clone: Path) -> Path:
    release = next(iter(records(clone, "publish").values()))["release"]
    run(clone, "verify")
    evidence = clone / "evidence" / release / TARGET
    index = json.loads((evidence / "evidence.json").read_bytes())
    assert index["verdict"] == "passed"
    assert index["images"] == {i: record["manifest_digest"] for i, record in records(clone, "build").items()}
    for image in index["images"]:
        assert digest_of((evidence / f"images/{image}/manifest.json").read_bytes()) == index["images"][image]
        agreement = json.loads((evidence / f"images/{image}/agreement.json").read_bytes())
        assert agreement["disagreements"] == []
        assert agreement["before_passed"] == agreement["after_passed"] > 0
    every_cheat_scores_nothing(evidence / f"images/{GUARDED}/checks-after.json")
    states = json.loads((evidence / "state.json").read_bytes())["states"]
    assert states["anonymous replay"] == "done"
    assert states["training"] == "not performed"
    assert "passes" in (evidence / "report.md").read_text().splitlines()[0]
    assert git(clone, "status", "--porcelain") == "", "evidence of the local target is nobody's to commit"
    return evidence


def every_cheat_scores_nothing(checks: Path) -> None:
    """Under the guard the whole red team was played in containers of this image, and nobody got anything."""
    report = CheckReport.load(checks.read_bytes(), str(checks))
    cheats = {check.id: check for check in report.results if check.id.startswith("repair.cheat.")}
    assert cheats.keys() == {f"repair.cheat.{cheat.name}" for cheat in load_scripts("cheat")}
    assert {check.id: check.observed for check in cheats.values() if check.observed != 0 or check.expected != 0} == {}
    assert all(check.statement.endswith("scores 0 under guard planted-hooks") for check in cheats.values())


def reviewed_without_network(clone: Path, evidence: Path) -> None:
    offline = ("unshare", "--net") if os.geteuid() == 0 else ("unshare", "--net", "--map-root-user")
    assert "bundles hold" in run(clone, "review", prefix=offline)
    report = evidence / "report.md"
    whole = report.read_bytes()
    report.write_bytes(whole.replace(b"passes", b"Passes", 1))
    assert "report.md" in run(clone, "review", code=7, prefix=offline)
    report.write_bytes(whole)


def nothing_is_done_twice(clone: Path) -> None:
    before = files_of(clone / ".pipeline/build")
    assert run(clone, "build").count("unchanged: nothing to do") == len(records(clone, "build"))
    published = records(clone, "publish")
    run(clone, "publish")
    assert records(clone, "publish") == published
    assert files_of(clone / ".pipeline/build") == before


def a_tampered_blob_is_noticed(clone: Path, evidence: Path) -> None:
    kept = files_of(evidence)
    digest = hex_of(records(clone, "build")["software"]["layers"][-1]["digest"])
    blob = clone / ".pipeline/services/registry/storage/docker/registry/v2/blobs/sha256" / digest[:2] / digest / "data"
    whole = blob.read_bytes()
    blob.write_bytes(bytes([*whole[:30], whole[30] ^ 1, *whole[31:]]))
    assert "verify failed: " in run(clone, "verify", code=7)
    assert files_of(evidence) == kept
    blob.write_bytes(whole)


def an_interrupted_verify_leaves_nothing(clone: Path, evidence: Path) -> None:
    kept = files_of(evidence)
    with start(clone, "verify") as process:
        assert process.stderr is not None
        while "checks ..." not in (line := process.stderr.readline()):
            assert line, "verify ended before its suites began"
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        interrupted = time.monotonic()
        _, error = process.communicate(timeout=120)
    print(f"interrupted verify: ended after {time.monotonic() - interrupted:.1f} s")
    assert process.returncode == 130, error
    assert "verify was interrupted; run it again" in error
    assert files_of(evidence) == kept


def everything_is_gone_after_down(clone: Path) -> None:
    run(clone, "down")
    left = [path for path in Path("/proc").glob("[0-9]*/cmdline") if _names(path, clone)]
    assert left == []
    assert mounts_under(clone) == ()
    for port in range(PORT, PORT + 3):
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0


def _names(cmdline: Path, clone: Path) -> bool:
    try:
        return os.fsencode(clone) in cmdline.read_bytes()
    except OSError:  # it ended meanwhile
        return False
