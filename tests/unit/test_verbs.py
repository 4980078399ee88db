"""The verbs in process, over simulators: what they print, which exit code, what they touch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from pipeline import verbs
from pipeline.__main__ import main
from pipeline.files import Lock
from tests.fakes.release import DATE, REPAIR, ROOT, WORKFLOW, TinyWorld, copy_world, edit_yaml, snapshot
from tests.fakes.signing import SUBJECT
from tests.fakes.verbs import simulate

NO_ENVIRONMENT: Mapping[str, str] = {}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> TinyWorld:
    made = TinyWorld(tmp_path_factory.mktemp("built") / "release")
    made.build()
    return made


@pytest.fixture
def tiny(template: TinyWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TinyWorld:
    made = copy_world(template, tmp_path / "release")
    monkeypatch.setattr(verbs, "World", simulate(made))
    return made


def run(tiny: TinyWorld, verb: str, *arguments: str) -> int:
    return main([verb, "--release", str(tiny.release_path), *arguments], NO_ENVIRONMENT)


def test_each_verb_ends_with_one_summary(tiny: TinyWorld, capsys: pytest.CaptureFixture[str]) -> None:
    (tiny.root / "pipeline" / "stands_for_the_code.py").write_text("VERSION = 2\n")
    assert run(tiny, "build") == 0
    built = capsys.readouterr().out
    assert "3 passed" in built
    assert f"images: {tiny.paths.state}/build/{DATE}/local" in built
    assert run(tiny, "build") == 0
    assert capsys.readouterr().out.count("unchanged: nothing to do") == 2
    assert run(tiny, "publish") == 0
    published = capsys.readouterr().out
    assert published.count(f"6 attestations, tag {DATE}") == 2
    assert f"bytes to {tiny.registry.host}" in published
    assert run(tiny, "verify") == 0
    verified = capsys.readouterr().out
    assert verified.count("3 passed, 0 failed") == 2
    assert f"evidence: {tiny.paths.evidence}/report.md" in verified
    assert run(tiny, "review") == 0
    reviewed = capsys.readouterr().out
    assert "13 bundles hold" in reviewed
    assert "not third-party trust" in reviewed
    for text in (built, published, verified):
        for image in (REPAIR, WORKFLOW):
            digest = tiny.layout(image).load_index().manifests[0].digest
            assert digest[:19] in text


def test_a_release_that_does_not_pass_exits_8_after_its_evidence(
    tiny: TinyWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tiny, "publish")
    tiny.examiner.outcomes["shell"] = "fail"
    assert run(tiny, "verify") == 8
    output = capsys.readouterr()
    assert "2 passed, 1 failed" in output.out
    assert "verify failed: the release does not pass" in output.err
    assert "DOES NOT PASS" in (tiny.paths.evidence / "report.md").read_text()
    assert run(tiny, "review") == 8


def deny_push(tiny: TinyWorld) -> None:
    tiny.registry.faults.denies_push = True


def take_down(tiny: TinyWorld) -> None:
    tiny.registry.faults.is_down = True


def forget_the_build(tiny: TinyWorld) -> None:
    (tiny.paths.built(REPAIR) / "record.json").unlink()


def damage_the_build(tiny: TinyWorld) -> None:
    (tiny.paths.built(REPAIR) / "checks.json").write_bytes(b"{}")


def misspell_a_key(tiny: TinyWorld) -> None:
    edit_yaml(tiny.release_path, lambda release: release.update(polices=release.pop("policies")))


@pytest.mark.parametrize(
    ("spoil", "code", "words"),
    [
        (deny_push, 6, "log in"),
        (take_down, 5, "no connection"),
        (forget_the_build, 3, "run: nox -s build"),
        (damage_the_build, 7, "checks.json"),
        (misspell_a_key, 2, "did you mean 'policies'?"),
    ],
)
def test_each_failure_has_its_exit_code_and_says_where_and_what_to_do(
    tiny: TinyWorld, capsys: pytest.CaptureFixture[str], spoil: object, code: int, words: str
) -> None:
    assert callable(spoil)
    spoil(tiny)
    assert run(tiny, "publish") == code
    error = capsys.readouterr().err
    assert "publish failed: " in error
    assert "  where: " in error
    assert words in error


def test_a_second_run_names_the_first(tiny: TinyWorld, capsys: pytest.CaptureFixture[str]) -> None:
    before = snapshot(tiny.root)
    with Lock(tiny.paths.lock, "build"):
        for verb in ("build", "publish", "verify"):
            assert run(tiny, verb) == 4
            error = capsys.readouterr().err
            assert "held by `build`, process " in error
            assert "wait for it to end" in error
        assert run(tiny, "plan") == 0, "a plan touches nothing and needs no lock"
    assert {name: data for name, data in snapshot(tiny.root).items() if name != ".pipeline/lock"} == before
    assert run(tiny, "build") == 0


def test_half_written_files_of_a_killed_run_are_removed_by_the_next(tiny: TinyWorld) -> None:
    leftovers = [tiny.paths.built(REPAIR) / ".partial-abc", tiny.paths.cache / "scans" / ".partial-def"]
    for leftover in leftovers:
        leftover.parent.mkdir(parents=True, exist_ok=True)
        leftover.write_bytes(b"half")
    assert run(tiny, "build") == 0
    assert not any(leftover.exists() for leftover in leftovers)


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in [folder, *folder.rglob("*")]}


def python(*arguments: str, cwd: Path = ROOT, environment: Mapping[str, str] = {}) -> subprocess.CompletedProcess[str]:
    """A process of the pipeline as nox starts it, with hardly any environment."""
    clean = {"PATH": "/nonexistent", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    command = [sys.executable, "-m", "pipeline", *arguments]
    return subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True, timeout=60, check=False)


def test_plan_touches_nothing_and_needs_nothing(template: TinyWorld, tmp_path: Path) -> None:
    fresh = TinyWorld(tmp_path / "release")
    before = listing(fresh.root)
    done = python(
        "plan", "--release", str(fresh.release_path), environment={"DOCKER_HOST": "tcp://127.0.0.1:1"}, cwd=fresh.root
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert listing(fresh.root) == before
    for words in (f"release {DATE} on target 'local'", SUBJECT, "adds:     workflow", "keeps out: fixtures"):
        assert words in done.stdout


def test_a_wrong_command_line_exits_64_and_shows_how_it_goes() -> None:
    for arguments in (["bild"], [], ["build", "--tagret", "local"], ["diff", "one"], ["build", "extra"]):
        done = python(*arguments)
        assert done.returncode == 64, arguments
        assert "usage: pipeline" in done.stderr
        assert "Traceback" not in done.stderr


def test_help_exits_0() -> None:
    done = python("--help")
    assert done.returncode == 0
    assert "Builds, publishes and re-verifies" in done.stdout


@pytest.mark.parametrize("verb", ["plan", "build", "publish", "verify", "review", "up"])
def test_a_target_that_does_not_exist_is_refused_before_any_work(tmp_path: Path, verb: str) -> None:
    fresh = TinyWorld(tmp_path / "release")
    before = listing(fresh.root)
    done = python(verb, "--release", str(fresh.release_path), "--target", "lokal")
    assert done.returncode == 2
    assert "did you mean 'local'?" in done.stderr
    assert listing(fresh.root) == before


def test_a_release_file_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    done = python("build", "--release", str(tmp_path / "release.yaml"))
    assert done.returncode == 2
    assert "missing file" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_review_of_a_folder_that_is_no_evidence_says_so(tmp_path: Path) -> None:
    fresh = TinyWorld(tmp_path / "release")
    done = python("review", "--release", str(fresh.release_path), str(tmp_path))
    assert done.returncode == 3
    assert "not an evidence folder" in done.stderr
