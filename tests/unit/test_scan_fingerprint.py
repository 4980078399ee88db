"""Fixtures are found in every disguise that keeps a region of them, and ordinary text never is one."""

from __future__ import annotations

import random
import sqlite3
import sysconfig
import textwrap
from pathlib import Path

import pytest

from pipeline.derive.fixtures import make_fingerprints, read_fixtures
from pipeline.errors import ConfigError
from pipeline.scan.buffer import FileBuffer
from pipeline.scan.fingerprint import Matcher
from tests.fakes.leaks import git, source_text

FIXTURE = source_text("solver", 3)
OTHER = source_text("other", 1)


def matcher(*ordinary: bytes, **texts: bytes) -> Matcher:
    return Matcher(make_fingerprints(texts or {"solver.py": FIXTURE}, ordinary))


def labels(data: bytes, by: Matcher | None = None) -> list[str]:
    return [match.label for match in (by or matcher()).match(data)]


DISGUISES = {
    "same": FIXTURE,
    "carriage returns": FIXTURE.replace(b"\n", b"\r\n"),
    "indented": textwrap.indent(FIXTURE.decode(), "    ").encode(),
    "dedented": b"\n".join(line.strip() for line in FIXTURE.splitlines()),
    "a region": OTHER + FIXTURE[900:2100] + OTHER,
    "without blank lines": FIXTURE.replace(b"\n\n", b"\n"),
    "every third line gone": b"\n".join(line for n, line in enumerate(FIXTURE.splitlines()) if n % 3),
    "an added file in a patch": b"@@ -0,0 +1,9 @@\n" + textwrap.indent(FIXTURE.decode(), "+", lambda _: True).encode(),
    "quoted in a mail": textwrap.indent(FIXTURE.decode(), "> ", lambda _: True).encode(),
    "lines in another order": b"\n".join(random.Random(1).sample(FIXTURE.splitlines(), len(FIXTURE.splitlines()))),
    "inside binary data": bytes(5000) + FIXTURE + bytes(5000),
}


@pytest.mark.parametrize("name", sorted(DISGUISES))
def test_a_disguised_fixture_is_found(name: str) -> None:
    assert labels(DISGUISES[name]) == ["solver.py"]


@pytest.mark.parametrize("start", range(0, 4000, 350))
def test_every_region_of_a_kibibyte_is_found(start: int) -> None:
    assert labels(OTHER + FIXTURE[start : start + 1024] + OTHER) == ["solver.py"]


def test_less_than_a_region_is_not_a_find() -> None:
    assert labels(OTHER + FIXTURE[:600]) == []


def test_a_fixture_in_a_database_is_found(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "db") as database:
        database.execute("create table files (name text, data text)")
        database.execute("insert into files values ('x', ?)", (FIXTURE.decode(),))
    database.close()
    assert labels((tmp_path / "db").read_bytes()) == ["solver.py"]


def test_lines_of_ordinary_texts_are_not_distinctive() -> None:
    licence = source_text("licence", 1)
    quoting = licence + b"answer = compute_the_answer_to_the_task(value, other)\n" * 1
    assert labels(licence, matcher(q=quoting)) == ["q"]
    assert labels(licence, matcher(licence, q=quoting)) == []
    assert labels(quoting, matcher(licence, q=quoting)) == ["q"]  # the whole file by digest


def test_the_context_of_a_patch_is_not_distinctive(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "core.py").write_bytes(OTHER)
    git(tmp_path, "add", ".")
    changed = OTHER.replace(b"\n\n", b"\n\n# inserted: an unmistakable remark\n", 1) + source_text("repair", 1)
    (tmp_path / "core.py").write_bytes(changed)
    patch = git(tmp_path, "diff", "-U100")
    by = matcher(patch=patch)
    assert labels(OTHER, by) == []
    assert labels(changed, by) == ["patch"]


def test_the_standard_library_holds_no_fixture() -> None:
    by = matcher()
    library = Path(sysconfig.get_path("stdlib"))
    files = sorted(library.glob("*.py"))[:200]
    assert len(files) > 100
    assert [file.name for file in files if by.match(file.read_bytes())] == []


def test_a_large_file_is_searched_in_windows(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.write(b"filler line that means nothing\n" * 300_000)
        file.write(FIXTURE)
        file.write(b"filler line that means nothing\n" * 300_000)
    with path.open("rb") as file:
        assert [match.label for match in matcher().match(FileBuffer(file))] == ["solver.py"]


def test_tiny_and_repetitive_texts_are_known_by_digest_only() -> None:
    by = matcher(tiny=b"x = 1\n" * 20, empty=b"")
    assert labels(b"x = 1\n" * 20, by) == ["tiny"]
    assert labels(b"x = 1\n" * 21, by) == []
    assert labels(b"", by) == []


def test_fixtures_are_read_from_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "fixtures/deep").mkdir(parents=True)
    (tmp_path / "fixtures/deep/a.patch").write_bytes(b"1")
    (tmp_path / "one").write_bytes(b"2")
    assert read_fixtures(tmp_path, ["fixtures", "one"]) == {"fixtures/deep/a.patch": b"1", "one": b"2"}
    with pytest.raises(ConfigError, match="does not exist"):
        read_fixtures(tmp_path, ["missing"])
    (tmp_path / "fixtures/link").symlink_to("/etc/passwd")
    with pytest.raises(ConfigError, match="regular file"):
        read_fixtures(tmp_path, ["fixtures"])
