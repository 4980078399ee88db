"""Ctrl-C, SIGTERM and SIGKILL in every verb, as processes: no record is left half-written and a rerun completes it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline import verbs
from pipeline.__main__ import main
from pipeline.files import PARTIAL_PREFIX
from tests.fakes.release import DATE, REPAIR, ROOT, TinyWorld, copy_world, snapshot
from tests.fakes.verbs import simulate

BEFORE = {"build": [], "publish": [], "verify": ["publish"], "review": ["publish", "verify"]}
POINTS = [
    ("build", "push_manifest"),
    ("build", "check"),
    ("publish", "sign"),
    ("publish", "push_referrer"),
    ("verify", "fetch_blob"),
    ("verify", "check"),
    ("review", "review"),
]
SIGNALS = [signal.SIGINT, signal.SIGTERM]
CASES = [(verb, point, SIGNALS[number % 2]) for number, (verb, point) in enumerate(POINTS)]
CASES += [("build", "check", signal.SIGTERM), ("review", "review", signal.SIGTERM)]
CASES += [(verb, point, signal.SIGKILL) for verb, point in (POINTS[1], POINTS[3], POINTS[5])]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> TinyWorld:
    made = TinyWorld(tmp_path_factory.mktemp("built") / "release")
    made.build()
    return made


def interrupt(root: Path, verb: str, point: str, number: signal.Signals) -> tuple[int, str]:
    """Run the verb up to the point, send the signal; exit code and what it said."""
    command = [sys.executable, "-m", "tests.fakes.verbs", str(root), point, *BEFORE[verb], verb]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            while (line := process.stdout.readline()) != "reached\n":
                assert line, process.stderr.read() if process.stderr else ""
            process.send_signal(number)
            _, error = process.communicate(timeout=20)  # the point itself would hold it for a minute
        finally:
            process.kill()
    return process.returncode, error


@pytest.mark.parametrize(("verb", "point", "number"), CASES)
def test_interrupted(
    template: TinyWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, point: str, number: signal.Signals
) -> None:
    tiny = copy_world(template, tmp_path / "release")
    if verb == "build":
        for path in ("images/repair/server/__main__.py", "images/workflow/workflow/__main__.py"):
            (tiny.root / path).write_text("print('changed')\n")
    before = snapshot(tiny.root)

    code, error = interrupt(tiny.root, verb, point, number)

    assert "Traceback" not in error
    if number == signal.SIGKILL:
        assert code == -signal.SIGKILL
    else:
        assert code == 130
        assert f"{verb} was interrupted; run it again to go on" in error
        assert list(tiny.root.rglob(f"{PARTIAL_PREFIX}*")) == []
    folders = {"build": tiny.paths.built, "publish": tiny.paths.published}
    if verb in folders:
        assert not (folders[verb](REPAIR) / "record.json").exists()
    if verb == "verify":
        assert not tiny.paths.evidence.exists()
    assert {name for name in before if not name.startswith(".pipeline/")} <= set(snapshot(tiny.root))

    fresh = TinyWorld(tiny.root)
    monkeypatch.setattr(verbs, "World", simulate(fresh))
    for each in ("build", "publish", "verify", "review"):
        assert main([each, "--release", str(fresh.release_path)], {}) == 0
    assert list(tiny.root.rglob(f"{PARTIAL_PREFIX}*")) == []
    assert fresh.registry.content.repository(f"releases/{REPAIR}").tags[DATE]
    assert (tiny.paths.evidence / "evidence.json").exists()


def test_a_run_beside_one_that_works_names_it_and_leaves_it_alone(template: TinyWorld, tmp_path: Path) -> None:
    tiny = copy_world(template, tmp_path / "release")
    command = [sys.executable, "-m", "tests.fakes.verbs", str(tiny.root)]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen(
        [*command, "push_referrer", "publish"], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as first:
        try:
            assert first.stdout is not None
            assert first.stdout.readline() == "reached\n"
            second = subprocess.run(
                [*command, "nowhere", "verify"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
            )
            assert second.returncode == 4
            assert f"held by `publish`, process {first.pid} on " in second.stderr
            assert first.poll() is None
        finally:
            first.kill()
