"""Licence words become SPDX expressions where a table knows them, and keep their own name where none does."""

from __future__ import annotations

import pytest

from pipeline.sbom.licences import debian_licence, python_licence, refused_keys, spdx_expression
from pipeline.sbom.markers import required_names, requires_txt_names
from pipeline.sbom.os_release import load_operating_system
from pipeline.sbom.package import Licence
from pipeline.sbom.rootfs import FoundFile, RootView


@pytest.mark.parametrize(
    ("short", "expression"),
    [
        ("GPL-2+", "GPL-2.0-or-later"),
        ("GPL-3", "GPL-3.0-only"),
        ("LGPL-2.1+ and Expat", "LGPL-2.1-or-later AND MIT"),
        ("GPL-1+ or Artistic", "GPL-1.0-or-later OR LicenseRef-Artistic"),
        ("GPL-2+ or Artistic, and BSD-3-clause", "(GPL-2.0-or-later OR LicenseRef-Artistic) AND BSD-3-Clause"),
        ("GFDL-NIV-1.3+", "GFDL-1.3-no-invariants-or-later"),
        ("public-domain", "LicenseRef-public-domain"),
        ("GPL-3+ with Bison exception", "LicenseRef-GPL-3-with-Bison-exception"),
        ("AGPL-3", "AGPL-3.0-only"),
        ("zlib, ISC", "ISC AND Zlib"),
        ("(((", "LicenseRef-unnamed"),
        ("<script>", "LicenseRef-script"),
    ],
)
def test_short_names_of_debian(short: str, expression: str) -> None:
    text = f"Format: https://www.debian.org/\n\nFiles: *\nCopyright: x\nLicense: {short}\n text\n"
    assert debian_licence(text.encode()) == Licence(expression)


def test_a_copyright_file_says_all_of_its_paragraphs_once() -> None:
    paragraphs = "\n\n".join(
        f"Files: {name}\nLicense: {text}" for name, text in (("a", "MIT"), ("b", "ISC"), ("c", "MIT"))
    )
    standalone = "License: GPL-2\n its text, for a paragraph that nobody has"
    assert debian_licence(f"Format: x\n\n{paragraphs}\n\n{standalone}\n".encode()) == Licence("ISC AND MIT")


def test_copyright_files_in_prose() -> None:
    prose = b"It is free. See /usr/share/common-licenses/GPL-2 and\n/usr/share/common-licenses/LGPL-2.1."
    assert debian_licence(prose) == Licence(None, ("GPL-2", "LGPL-2.1"))
    assert debian_licence(b"All rights reserved.") == debian_licence(b"") == Licence()


@pytest.mark.parametrize(
    ("expression", "licence", "classifiers", "expected"),
    [
        ("mit or apache-2.0", "", [], Licence("MIT OR Apache-2.0")),
        ("", "Apache-2.0", ["License :: OSI Approved :: MIT License"], Licence("Apache-2.0")),
        ("", "", ["License :: OSI Approved :: MIT License"], Licence("MIT")),
        ("", "BSD", ["License :: OSI Approved :: BSD License"], Licence(None, ("BSD",))),
        ("", "", ["License :: OSI Approved :: BSD License", "Topic :: x"], Licence(None, ("BSD License",))),
        ("", "", ["License :: OSI Approved :: MIT License", "License :: x"], Licence(None, ("MIT License", "x"))),
        ("", "A licence\nof many lines", [], Licence(None, ("A licence",))),
        ("MIT AND NOT-A-LICENCE", "", [], Licence(None, ("MIT AND NOT-A-LICENCE",))),
        ("", "", [], Licence()),
    ],
)  # fmt: skip
def test_python_metadata(expression: str, licence: str, classifiers: list[str], expected: Licence) -> None:
    found = python_licence(expression, licence, classifiers)
    assert (found.expression, set(found.names)) == (expected.expression, set(expected.names))


def test_expressions() -> None:
    assert spdx_expression("gpl-2.0-or-later with classpath-exception-2.0") is not None
    assert spdx_expression("MIT AND") is spdx_expression("") is spdx_expression("(" * 2000) is None


@pytest.mark.parametrize(
    ("expression", "refused"),
    [
        ("MIT AND (ISC OR SSPL-1.0)", ()),
        ("MIT AND SSPL-1.0", ("SSPL-1.0",)),
        ("AGPL-3.0-only OR (MIT AND SSPL-1.0)", ("AGPL-3.0-only", "SSPL-1.0")),
        ("GPL-2.0-only WITH Classpath-exception-2.0", ("GPL-2.0-only WITH Classpath-exception-2.0",)),
        ("BSD License", ("BSD License",)),
    ],
)
def test_what_stands_in_the_way(expression: str, refused: tuple[str, ...]) -> None:
    assert refused_keys(expression, {"MIT", "ISC"}.__contains__) == refused


def test_markers_are_those_of_the_image_not_of_this_machine() -> None:
    lines = [
        "always",
        "windows; sys_platform == 'win32'",
        "old; python_version < '3.12'",
        "new; python_version >= '3.12'",
        "optional; extra == 'all'",
        "Dotted.Name[extra] (>=1) ; os_name == 'posix'",
        "not a requirement at all",
    ]
    assert required_names(lines, "3.11") == ("always", "dotted-name", "old")
    assert required_names(lines, "3.13") == ("always", "dotted-name", "new")
    text = "always\n\n[:python_version < '3.12']\nold\n\n[all]\noptional\n[all:os_name == 'posix']\nneither\n"
    assert requires_txt_names(text, "3.11") == ("always", "old")
    assert requires_txt_names(text, "3.12") == ("always",)


def test_os_release() -> None:
    text = b'# a comment\nID=ubuntu\nID_LIKE="debian"\nVERSION_ID=\'24.04\'\nBROKEN="\nnot an assignment\n'
    view = RootView({"usr/lib/os-release": FoundFile("usr/lib/os-release", 0, "", text)}, {}, ("sha256:x",))
    system = load_operating_system(view)
    assert (system.distro, system.family) == ("ubuntu-24.04", ("ubuntu", "debian"))
    linked = RootView(view.files, {"etc/os-release": "../usr/lib/os-release"}, view.layers)
    assert load_operating_system(linked) == system
    assert load_operating_system(RootView({}, {}, ())).distro == ""
