"""A root out of .deb files that are built here: merged /usr, database, accounts, and damaged or hostile packages."""

from __future__ import annotations

import io
import random
import tarfile
from pathlib import Path

import pytest

from pipeline.derive.layer import Entry, make_layer
from pipeline.embedded import debian
from pipeline.embedded.debian import make_root, merged_path
from pipeline.errors import HostileInputError

PASSWD = b"root:*:0:0:root:/root:/bin/bash\nnobody:*:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
GROUP = b"root:*:0:\nnogroup:*:65534:\n"
CONTROL = """Package: {name}
Version: {version}
Architecture: amd64
Maintainer: Nobody <nobody@example.invalid>
{more}Description: test
"""
BASE: dict[str, bytes] = {
    "./usr/share/base-passwd/passwd.master": PASSWD,
    "./usr/share/base-passwd/group.master": GROUP,
    "./usr/share/doc/base/copyright": b"licence",
    "./usr/share/doc/base/changelog.gz": b"words",
    "./usr/share/man/man1/base.1.gz": b"words",
    "./etc/os-release": b"ID=debian\n",
}


def tar_of(files: dict[str, bytes | tarfile.TarInfo]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in files.items():
            info = content if isinstance(content, tarfile.TarInfo) else tarfile.TarInfo(name)
            if isinstance(content, bytes):
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content) if isinstance(content, bytes) else None)
    return out.getvalue()


def make_deb(
    folder: Path, name: str, files: dict[str, bytes | tarfile.TarInfo], more: str = "", md5sums: bytes = b""
) -> Path:
    """An ar archive as dpkg-deb reads it, without dpkg-deb's own checks of what goes in."""
    control = CONTROL.format(name=name, version="1.0", more=more).encode()
    script = b"#!/bin/sh\ntouch /tmp/a-maintainer-script-ran\n"
    members = {
        "debian-binary": b"2.0\n",
        "control.tar.gz": tar_of({"./control": control, "./md5sums": md5sums, "./postinst": script}),
        "data.tar.gz": tar_of(files),
    }
    raw = b"!<arch>\n"
    for member, data in members.items():
        raw += (
            f"{member:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
        )
    path = folder / f"{name}_1.0_amd64.deb"
    path.write_bytes(raw)
    return path


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def root_of(*paths: Path) -> dict[str, Entry]:
    return {entry.path: entry for entry in make_root(list(paths))}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return make_deb(
        tmp_path,
        "base",
        dict(BASE),
        md5sums=b"0" * 32 + b"  etc/os-release\n" + b"1" * 32 + b"  usr/share/man/man1/base.1.gz\n",
    )


def test_usr_is_merged(base: Path, tmp_path: Path) -> None:
    tool = make_deb(
        tmp_path, "tool", {"./bin/tool": b"t", "./lib64/ld.so": special("./lib64/ld.so", tarfile.SYMTYPE, "/lib/ld")}
    )
    root = root_of(base, tool)
    assert root["usr/bin/tool"].data == b"t"
    assert root["usr/lib64/ld.so"].target == "/lib/ld"
    assert [root[name].target for name in ("bin", "sbin", "lib", "lib64")] == [
        "usr/bin",
        "usr/sbin",
        "usr/lib",
        "usr/lib64",
    ]


def test_the_database_lists_what_is_there(base: Path, tmp_path: Path) -> None:
    same = make_deb(tmp_path, "libx", {"./usr/lib/libx.so": b"x"}, more="Multi-Arch: same\n")
    root = root_of(base, same)
    status = root["var/lib/dpkg/status"].data.decode()
    assert "Package: base\nStatus: install ok installed\nVersion: 1.0\n" in status
    assert len(status.strip().split("\n\n")) == 2
    assert root["var/lib/dpkg/info/libx:amd64.list"].data == b"/.\n/usr/lib/libx.so\n"
    assert b"man1" not in root["var/lib/dpkg/info/base.list"].data
    assert root["var/lib/dpkg/info/base.md5sums"].data == b"0" * 32 + b"  etc/os-release\n"


def test_licences_stay_and_words_go(base: Path) -> None:
    root = root_of(base)
    assert "usr/share/doc/base/copyright" in root
    assert "etc/os-release" in root
    assert not any("changelog" in path or "/man/" in path for path in root)


def test_the_agent_has_an_account_and_a_home_of_its_own(base: Path) -> None:
    root = root_of(base)
    assert root["etc/passwd"].data.endswith(b"\narena-agent:x:2000:2000:Agent:/home/arena-agent:/bin/bash\n")
    assert root["etc/group"].data.endswith(b"\narena-agent:x:2000:\n")
    home = root["home/arena-agent"]
    assert (home.kind, home.mode, home.uid, home.gid) == ("dir", 0o700, 2000, 2000)
    assert [root[path].mode for path in ("tmp", "var/tmp", "root")] == [0o1777, 0o1777, 0o700]
    assert b"passwd: files" in root["etc/nsswitch.conf"].data


def test_no_maintainer_script_runs_or_stays(base: Path) -> None:
    assert not any("postinst" in path for path in root_of(base))
    assert not Path("/tmp/a-maintainer-script-ran").exists()


def test_the_same_packages_are_the_same_bytes(base: Path, tmp_path: Path) -> None:
    tool = make_deb(tmp_path, "tool", {"./bin/tool": b"t"})
    paths = [base, tool]
    random.Random(3).shuffle(paths)
    assert make_layer(make_root(paths), 0) == make_layer(make_root([tool, base]), 0)


def test_hard_links_and_large_copies_become_links(base: Path, tmp_path: Path) -> None:
    large = bytes(debian.LARGE_BYTES)
    hard = special("./usr/bin/b", tarfile.LNKTYPE, "./bin/a")
    root = root_of(base, make_deb(tmp_path, "tool", {"./bin/a": large, "./usr/bin/b": hard, "./usr/lib/git": large}))
    assert (root["usr/bin/b"].kind, root["usr/bin/b"].target) == ("symlink", "/usr/bin/a")
    assert (root["usr/lib/git"].kind, root["usr/lib/git"].target) == ("symlink", "/usr/bin/a")


@pytest.mark.parametrize(
    "files",
    [
        {"./../evil": b""},
        {"./usr/../../evil": b""},
        {"./dev/sda": special("./dev/sda", tarfile.BLKTYPE)},
        {"./run/pipe": special("./run/pipe", tarfile.FIFOTYPE)},
        {"./etc/os-release": b"ID=other\n"},
    ],
)
def test_what_does_not_belong_in_a_root_is_refused(
    files: dict[str, bytes | tarfile.TarInfo], base: Path, tmp_path: Path
) -> None:
    with pytest.raises(HostileInputError):
        make_root([base, make_deb(tmp_path, "evil", files)])


@pytest.mark.parametrize("keep", [0, 8, 200, 400, -20])
def test_a_damaged_deb_is_refused_and_named(keep: int, base: Path, tmp_path: Path) -> None:
    tool = make_deb(tmp_path, "tool", {"./bin/tool": random.Random(1).randbytes(5_000)})
    tool.write_bytes(tool.read_bytes()[:keep])
    with pytest.raises(HostileInputError) as caught:
        make_root([base, tool])
    assert caught.value.where == str(tool)


def test_a_control_file_with_an_odd_name_is_refused() -> None:
    deb = debian.Deb(Path("evil.deb"), b"Package: ../../evil\nArchitecture: amd64\n", b"")
    with pytest.raises(HostileInputError, match="usable Package"):
        assert deb.database_name


def test_limits(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian, "MAX_UNPACKED_BYTES", 1_000)
    with pytest.raises(HostileInputError):
        make_root([base, make_deb(tmp_path, "tool", {"./bin/tool": bytes(2_000)})])


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("./bin/x", "usr/bin/x"),
        ("/lib64/ld", "usr/lib64/ld"),
        ("./usr/lib/x", "usr/lib/x"),
        ("./libx", "libx"),
        (".", ""),
    ],
)
def test_merged_path(name: str, path: str) -> None:
    assert merged_path(name) == path
