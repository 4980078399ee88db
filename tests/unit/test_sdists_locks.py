"""Lock files of package sources: what is accepted, and file:line for what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.embedded.locks import load_sdist_lock, load_wheel_lock
from pipeline.errors import ConfigError

HEX = "ab" * 32


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_wheel_lock(tmp_path: Path) -> None:
    lock = write(tmp_path / "a.lock", f"# what it is\n\nfoo-bar==1.2.post1 --hash=sha256:{HEX}  # why\n")
    (wheel,) = load_wheel_lock(lock)
    assert (wheel.name, wheel.version, wheel.sha256) == ("foo-bar", "1.2.post1", HEX)
    assert wheel.requirement == f"foo-bar==1.2.post1 --hash=sha256:{HEX}"


@pytest.mark.parametrize(
    "line",
    [
        "foo==1.0",
        f"foo>=1.0 --hash=sha256:{HEX}",
        f"foo==1.0 --hash=sha256:{HEX[:-1]}",
        f"foo==1.0 --hash=sha256:{HEX} --hash=sha256:{HEX}",
        f"foo==1.0 --hash=md5:{HEX[:32]}",
        f"--index-url=x foo==1.0 --hash=sha256:{HEX}",
        f"foo @ file:///x --hash=sha256:{HEX}",
    ],
)
def test_a_wheel_that_is_not_pinned_is_refused_with_its_line(line: str, tmp_path: Path) -> None:
    lock = write(tmp_path / "a.lock", f"ok==1 --hash=sha256:{HEX}\n{line}\n")
    with pytest.raises(ConfigError, match="not a pinned wheel") as caught:
        load_wheel_lock(lock)
    assert caught.value.where == f"{lock}:2"


def test_a_project_twice_is_refused_however_it_is_spelt(tmp_path: Path) -> None:
    lock = write(tmp_path / "a.lock", f"a-b==1 --hash=sha256:{HEX}\nA_B==2 --hash=sha256:{HEX}\n")
    with pytest.raises(ConfigError, match="locked twice"):
        load_wheel_lock(lock)


def test_sdist_lock_keeps_the_order_of_versions(tmp_path: Path) -> None:
    lock = write(tmp_path / "s.lock", f"1.9 {HEX} p-1.9.tar.gz\n1.10 {HEX} P-1.10.zip\n")
    assert [(s.version, s.file_name) for s in load_sdist_lock(lock)] == [
        ("1.9", "p-1.9.tar.gz"),
        ("1.10", "P-1.10.zip"),
    ]


@pytest.mark.parametrize(
    "line", ["1.0 abc p.zip", f"1.0 {HEX} ../p.zip", f"1.0 {HEX}", f"one {HEX} p.zip", f"1.0 {HEX} a b"]
)
def test_an_sdist_that_is_not_pinned_is_refused(line: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a pinned sdist"):
        load_sdist_lock(write(tmp_path / "s.lock", line))


@pytest.mark.parametrize("load", [load_wheel_lock, load_sdist_lock])
def test_empty_absent_and_unreadable_locks_are_refused(load: object, tmp_path: Path) -> None:
    assert callable(load)
    (tmp_path / "binary.lock").write_bytes(b"\xff\xfe\x00")
    for path in (write(tmp_path / "empty.lock", "# nothing\n"), tmp_path / "absent.lock", tmp_path / "binary.lock"):
        with pytest.raises(ConfigError):
            load(path)


@pytest.mark.parametrize("task", ["format-code-task-000666", "format-code-task-001926"])
def test_the_locks_of_the_tasks_are_accepted(task: str) -> None:
    folder = Path(__file__).parents[2] / "images/mimo/tasks" / task
    assert len(load_sdist_lock(folder / "sdists.lock")) > 20
    assert "numpy" in {wheel.name for wheel in load_wheel_lock(folder / "packages.lock")}
