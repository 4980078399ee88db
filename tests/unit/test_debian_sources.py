"""The machine's Debian mirror out of apt's sources, and which packages and paths a root leaves out."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.embedded.aptsources import DebianMirror, load_mirror
from pipeline.embedded.debian_cuts import DROPPED_PACKAGES, DROPPED_PATHS, drops_package, drops_path
from pipeline.errors import ServiceError

MIRROR, SECURITY = "http://mirror.example.invalid/debian", "http://mirror.example.invalid/debian-security"
DEB822 = f"""# a comment
Types: deb
URIs: https://tools.example.invalid/apt
Suites: stable-tools
Components: main

Types: deb-src
URIs: http://source.example.invalid/debian
Suites: bookworm

Types: deb
Enabled: no
URIs: http://off.example.invalid/debian
Suites: bookworm

Types: deb deb-src
URIs:
 {MIRROR}/
Suites: bookworm
 bookworm-updates
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 xx

Types: deb
URIs: {SECURITY}
Suites: bookworm-security
Components: main
"""
ONE_LINE = f"""# deb http://off.example.invalid/debian bookworm main
deb-src http://source.example.invalid/debian bookworm main
deb cdrom:[Debian]/ bookworm main
deb [arch=amd64 signed-by=/usr/share/keyrings/a.gpg] {MIRROR} trixie main contrib # why
deb {MIRROR} trixie-updates main
deb {SECURITY} trixie-security main
"""


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "keyrings").mkdir()
    (tmp_path / "keyrings/debian-archive-keyring.gpg").write_bytes(b"keys")
    return tmp_path


def load(etc: Path, named: str | None = None) -> DebianMirror:
    return load_mirror(named, etc, etc / "keyrings")


def test_deb822(etc: Path) -> None:
    (etc / "sources.list.d/debian.sources").write_text(DEB822)
    mirror = load(etc)
    assert (mirror.main, mirror.updates, mirror.security) == (MIRROR, MIRROR, SECURITY)


@pytest.mark.parametrize("name", ["sources.list", "sources.list.d/debian.list"])
def test_one_line(name: str, etc: Path) -> None:
    (etc / name).write_text(ONE_LINE)
    mirror = load(etc)
    assert (mirror.main, mirror.updates, mirror.security) == (MIRROR, MIRROR, SECURITY)


def test_another_distribution_has_no_debian_mirror(etc: Path) -> None:
    (etc / "sources.list").write_text("deb http://archive.example.invalid/ubuntu noble main\n")
    with pytest.raises(ServiceError, match="no Debian mirror"):
        load(etc)


def test_files_that_apt_ignores_are_ignored(etc: Path) -> None:
    (etc / "sources.list.d/debian.sources.disabled").write_text(DEB822)
    (etc / "sources.list.d/debian.list.save").write_text(ONE_LINE)
    with pytest.raises(ServiceError, match="no Debian mirror"):
        load(etc)


@pytest.mark.parametrize(("named", "security"), [(MIRROR, None), (f"{MIRROR} {SECURITY}", SECURITY)])
def test_a_named_mirror_wins(named: str, security: str | None, etc: Path) -> None:
    (etc / "sources.list").write_text("deb http://other.example.invalid/debian bookworm main\n")
    assert (load(etc, named).main, load(etc, named).security) == (MIRROR, security)


def test_without_a_keyring_nothing_is_trusted(etc: Path) -> None:
    (etc / "keyrings/debian-archive-keyring.gpg").unlink()
    with pytest.raises(ServiceError, match="keyring") as caught:
        load(etc, MIRROR)
    assert "debian-archive-keyring" in caught.value.remedy


def test_the_suite_is_the_images_not_the_machines() -> None:
    mirror = DebianMirror(MIRROR, None, SECURITY, (Path("/k.gpg"),))
    text = mirror.to_deb822("trixie", [Path("/copy/k.gpg")])
    assert text.count("Types: deb\n") == 2
    assert f"URIs: {MIRROR}\nSuites: trixie\n" in text
    assert f"URIs: {SECURITY}\nSuites: trixie-security\n" in text
    assert text.count("Signed-By: /copy/k.gpg\n") == 2
    assert "trusted" not in text.lower()


@pytest.mark.parametrize(
    "name",
    [
        "perl-base",
        "perl-modules-5.36",
        "libperl5.40",
        "libcurl3-gnutls",
        "libcurl3t64-gnutls",
        "libgnutls30t64",
        "dpkg",
        "libkrb5-3",
        "libk5crypto3",
        "libldap-2.5-0",
        "libldap2",
        "libdb5.3t64",
        "libnsl2",
        "libtirpc3t64",
        "git-man",
    ],
)
def test_packages_that_are_left_out(name: str) -> None:
    assert drops_package(name)


@pytest.mark.parametrize(
    "name",
    [
        "git",
        "bash",
        "libc6",
        "libpcre2-8-0",
        "libssl3",
        "libssl3t64",
        "zlib1g",
        "libstdc++6",
        "libgcc-s1",
        "gcc-12-base",
        "libpython3.11-minimal",
        "python3.13-minimal",
        "libsqlite3-0",
        "libbz2-1.0",
        "base-files",
        "coreutils",
    ],
)
def test_packages_that_stay(name: str) -> None:
    assert not drops_package(name)


@pytest.mark.parametrize(
    "path",
    [
        "usr/share/man/man1/ls.1.gz",
        "usr/share/doc/git/RelNotes/x",
        "usr/share/locale/de/x",
        "usr/lib/git-core/git-svn",
        "usr/lib/git-core/git-remote-http",
        "usr/lib/python3.13/test/x.py",
        "etc/init.d/x",
    ],
)
def test_paths_that_are_left_out(path: str) -> None:
    assert drops_path(path)


@pytest.mark.parametrize(
    "path",
    [
        "usr/share/doc/git/copyright",
        "usr/lib/git-core/git-stash",
        "usr/lib/git-core/git-submodule",
        "etc/os-release",
        "usr/lib/python3.11/unittest/__init__.py",
        "usr/lib/python3.11/site.py",
        "usr/bin/git",
    ],
)
def test_paths_that_stay(path: str) -> None:
    assert not drops_path(path)


def test_every_cut_has_a_reason() -> None:
    assert all(reason.strip() for reason in (*DROPPED_PACKAGES.values(), *(reason for _, reason in DROPPED_PATHS)))
