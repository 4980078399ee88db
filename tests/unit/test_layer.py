"""The layer writer: one layer out of the same entries, whoever writes it, wherever and in whatever order."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from pipeline.derive.layer import Entry, make_layer, write_layer
from pipeline.errors import PipelineError

EPOCH_S = 1_760_227_200
ENTRIES = (
    Entry("a", "dir", mode=0o1777),
    Entry("a/b.txt", data=b"b", mode=0o600, uid=2000, gid=2000),
    Entry("a.txt", data=b"a"),
    Entry("a/ünï-日本.txt", data=b"u"),
    Entry("link", "symlink", target="a/b.txt"),
    Entry("deep/" * 40 + "file", data=b"deep"),
    Entry("x" * 90 + "/" + "y" * 200, data=b"long"),
    Entry("target", "symlink", target="z" * 180),
)
PROGRAM = """
from tests_entries import ENTRIES
from pipeline.derive.layer import make_layer
print(make_layer(ENTRIES, 1760227200)[1].digest)
"""


def members(packed: bytes) -> list[tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as tar:
        return tar.getmembers()


def test_order_of_entries_does_not_matter() -> None:
    shuffled = list(ENTRIES)
    random.Random(7).shuffle(shuffled)
    assert make_layer(shuffled, EPOCH_S)[0] == make_layer(ENTRIES, EPOCH_S)[0]


def test_members_are_sorted_and_a_folder_comes_before_its_content() -> None:
    names = [member.name for member in members(make_layer(ENTRIES, EPOCH_S)[0])]
    assert names == sorted(names, key=lambda name: name.split("/"))
    assert names.index("a") < names.index("a/b.txt")


def test_owner_mode_time_and_target_are_as_given() -> None:
    by_name = {member.name: member for member in members(make_layer(ENTRIES, EPOCH_S)[0])}
    file, link = by_name["a/b.txt"], by_name["link"]
    assert (file.mode, file.uid, file.gid, file.uname, file.gname) == (0o600, 2000, 2000, "", "")
    assert {member.mtime for member in by_name.values()} == {EPOCH_S}
    assert (link.linkname, link.mode) == ("a/b.txt", 0o777)
    assert by_name["a"].mode == 0o1777


def test_long_and_non_ascii_names_survive() -> None:
    names = {member.name for member in members(make_layer(ENTRIES, EPOCH_S)[0])}
    assert {entry.path for entry in ENTRIES} <= names
    assert {member.linkname for member in members(make_layer(ENTRIES, EPOCH_S)[0])} >= {"z" * 180}


def test_gnu_tar_reads_it(tmp_path: Path) -> None:
    (tmp_path / "layer.tar.gz").write_bytes(make_layer(ENTRIES, EPOCH_S)[0])
    subprocess.run(["tar", "-xzf", "layer.tar.gz", "--no-same-owner"], cwd=tmp_path, check=True)
    assert (tmp_path / "a/ünï-日本.txt").read_bytes() == b"u"
    assert (tmp_path / "link").readlink() == Path("a/b.txt")


def test_missing_parents_are_made_and_given_ones_are_kept() -> None:
    by_name = {member.name: member for member in members(make_layer([Entry("p/q/f", data=b"")], EPOCH_S)[0])}
    assert [by_name[name].isdir() for name in ("p", "p/q")] == [True, True]
    kept = members(make_layer([Entry("p", "dir", mode=0o700), Entry("p/f", data=b"")], EPOCH_S)[0])
    assert kept[0].mode == 0o700


@pytest.mark.parametrize("path", ["/absolute", "a/../b", "./a", "a//b", "a/", ".."])
def test_a_path_that_is_not_relative_and_normal_is_refused(path: str) -> None:
    with pytest.raises(PipelineError, match="relative and normal"):
        make_layer([Entry(path)], EPOCH_S)


def test_one_path_twice_is_refused() -> None:
    with pytest.raises(PipelineError, match="one path"):
        make_layer([Entry("a"), Entry("a", data=b"other")], EPOCH_S)


def test_the_stream_and_the_memory_form_agree() -> None:
    out = io.BytesIO()
    facts = write_layer(iter(ENTRIES), out, EPOCH_S)
    assert (out.getvalue(), facts) == make_layer(ENTRIES, EPOCH_S)


@pytest.mark.parametrize(
    ("umask", "environment"),
    [
        (0o000, {"TZ": "Pacific/Kiritimati", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "1"}),
        (0o077, {"TZ": "America/St_Johns", "LC_ALL": "C", "PYTHONHASHSEED": "2", "PYTHONUTF8": "0", "USER": "other"}),
    ],
)
def test_umask_locale_zone_user_and_folder_do_not_matter(
    umask: int, environment: dict[str, str], tmp_path: Path
) -> None:
    # repr leaves the data of an entry out, so it is written by hand.
    rows = ", ".join(
        f"Entry({e.path!r}, {e.kind!r}, {e.data!r}, {e.mode}, {e.uid}, {e.gid}, {e.target!r})" for e in ENTRIES
    )
    source = f"from pipeline.derive.layer import Entry\nENTRIES = ({rows})\n"
    (tmp_path / "tests_entries.py").write_text(source, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env={"PYTHONPATH": path, **environment},
        umask=umask,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == make_layer(ENTRIES, EPOCH_S)[1].digest
