"""An image with 50 packages in every shape that metadata has on disk, and the leftovers that are no package."""

from __future__ import annotations

import json

from pipeline.derive.layer import Entry
from tests.fakes.images import FakeImage, entry, make_image

SITE = "usr/lib/python3/dist-packages"
LOCAL = "usr/local/lib/python3.11/site-packages"
VENV = "opt/venv/lib/python3.11/site-packages"
CONDA = "opt/conda"
RUNTIME = "opt/arena/runtime"
OS_RELEASE = 'ID=debian\nVERSION_ID="12"\nNAME="Debian GNU/Linux"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'

COPYRIGHT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/

Files: *
Copyright: somebody
License: GPL-2+ or Artistic, and Expat

Files: debian/*
Copyright: somebody else
License: GPL-2+
 The text of it.
"""


def deb(name: str, version: str, arch: str = "amd64", status: str = "install ok installed", **fields: str) -> str:
    """A paragraph of dpkg's status."""
    lines = [
        f"Package: {name}",
        *([f"Status: {status}"] if status else []),
        f"Architecture: {arch}",
        f"Version: {version}",
    ]
    lines += [f"{key.replace('_', '-')}: {value}" for key, value in fields.items()]
    return "\n".join([*lines, f"Description: what {name} is", " and more", ""])


def dist(place: str, name: str, version: str, *, folder: str = "", record: bool = True, extra: str = "") -> list[Entry]:
    """A dist-info folder."""
    at = f"{place}/{folder or name.replace('-', '_') + '-' + version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{extra}\nA description.\n"
    files = [entry(f"{at}/METADATA", metadata), entry(f"{at}/INSTALLER", "pip\n")]
    return files + ([entry(f"{at}/RECORD", f"{at}/METADATA,,\n")] if record else [])


def egg(path: str, name: str, version: str) -> Entry:
    """A PKG-INFO file."""
    return entry(path, f"Metadata-Version: 1.2\nName: {name}\nVersion: {version}\nLicense: MIT\n")


def conda(name: str, version: str, build: str = "h0_0") -> Entry:
    """A record of conda."""
    record = {"name": name, "version": version, "build": build, "subdir": "linux-64", "license": "BSD-3-Clause"}
    return entry(
        f"{CONDA}/conda-meta/{name}-{version}-{build}.json", json.dumps({**record, "depends": ["openssl >=3"]})
    )


STATUS = "\n".join(
    [
        deb("base-files", "12.4+deb12u5"),
        deb("libc6", "2.36-9", Source="glibc", Provides="libc-virtual (= 2)"),
        deb("libc6", "2.36-9", arch="i386", Source="glibc"),
        deb("bash", "5.2.15-2+b2", Pre_Depends="libc6 (>= 2.36)", Depends="base-files, missing | debconf"),
        deb("git", "1:2.39.5-0+deb12u2", Depends="libc-virtual, perl:any", Source="git (1:2.39.5-0+deb12u1)"),
        deb("perl", "5.36.0-7"),
        deb("debconf", "1.5.82", arch="all"),
        deb("tzdata", "2024a-0+deb12u1~rc1", arch="all"),
        deb("waiting", "1.0", status="install ok unpacked"),
    ]
)
NO_PACKAGES = "\n".join(
    [
        deb("removed", "1.0", status="deinstall ok config-files"),
        deb("never", "1.0", status="purge ok not-installed"),
    ]
)
EDITABLE = json.dumps({"url": "file:///workspace/tool", "dir_info": {"editable": True}})

BOTTOM: list[Entry] = [
    entry("etc/os-release", OS_RELEASE),
    entry("etc/debian_version", "12.5\n"),
    entry("var/lib/dpkg/status", STATUS + "\n" + deb("purged", "1.0")),
    entry("var/lib/dpkg/info/bash.md5sums", "d41d8cd98f00b204e9800998ecf8427e  bin/bash\n"),
    entry("var/lib/dpkg/info/bash.list", "/bin/bash\n"),
    entry("usr/share/doc/bash/copyright", COPYRIGHT),
    entry("usr/share/doc/libc6/copyright", "See /usr/share/common-licenses/LGPL-2.1.\n"),
    Entry("usr/share/doc/git", "symlink", target="bash"),
    *(
        entry(f"var/lib/dpkg/status.d/{name}", deb(name, "1.2-3", status=""))
        for name in ("netbase", "openssl", "libssl3")
    ),
    entry("var/lib/dpkg/status.d/netbase.md5sums", "d41d8cd98f00b204e9800998ecf8427e  etc/protocols\n"),
    *dist(SITE, "PyYAML", "6.0", folder="PyYAML-6.0", extra="License: MIT\n"),
    egg(f"{SITE}/PyGObject-3.42.2.egg-info", "PyGObject", "3.42.2"),
    egg(f"{SITE}/crcmod-1.7.egg-info", "crcmod", "1.7"),
    egg(f"{SITE}/argcomplete-2.0.0.egg-info/PKG-INFO", "argcomplete", "2.0.0"),
    egg(f"{SITE}/blinker-1.5.egg-info/PKG-INFO", "blinker", "1.5"),
    entry(
        f"{SITE}/blinker-1.5.egg-info/requires.txt", "argcomplete\n\n[:python_version < '3']\ncrcmod\n\n[x]\nPyYAML\n"
    ),
    *dist(SITE, "cryptography", "38.0.4"),
    egg(f"{SITE}/cryptography.egg-info/PKG-INFO", "cryptography", "38.0.4"),
    *dist(LOCAL, "hidden-by-whiteout", "1.0"),
    *dist(LOCAL, "hidden-by-opaque", "1.0", folder="old/hidden_by_opaque-1.0"),
    *dist(LOCAL, "upgraded", "1.0"),
    *dist(LOCAL, "pip", "24.0"),
    entry(
        f"{LOCAL}/pip/_vendor/vendor.txt", "CacheControl==0.13.1  # Make sure\nmsgpack==1.0.5\nrequests==2.31.0\n    \n"
    ),
]

MIDDLE: list[Entry] = [
    entry("var/lib/dpkg/status", STATUS + "\n" + NO_PACKAGES),
    entry("var/lib/dpkg/info/perl.list", "/usr/bin/perl\n"),
    entry(f"{LOCAL}/.wh.hidden_by_whiteout-1.0.dist-info"),
    entry(f"{LOCAL}/old/.wh..wh..opq"),
    entry(f"{LOCAL}/.wh.upgraded-1.0.dist-info"),
    *dist(LOCAL, "upgraded", "2.0"),
    *dist(
        LOCAL,
        "numpy",
        "2.1.0",
        extra="License-Expression: BSD-3-Clause AND (MIT OR Zlib)\nRequires-Dist: upgraded>=2\n"
        "Requires-Dist: no-such; sys_platform == 'win32'\nRequires-Dist: scipy; extra == 'all'\n"
        "Requires-Dist: Six.Move",
    ),
    *dist(LOCAL, "scipy", "1.14.0", extra="Classifier: License :: OSI Approved :: BSD License"),
    *dist(LOCAL, "six-move", "1.0"),
    *dist(LOCAL, "no-record", "1.0", record=False),
    *dist(LOCAL, "no-record-either", "0.1a1", record=False),
    *dist(LOCAL, "renamed-project", "3.0", folder="original_name-3.0"),
    *dist(LOCAL, "Mixed.Case_name", "1!2.0+local.1", folder="mixed_case_name-2.0"),
    *dist(LOCAL, "setuptools", "70.0.0"),
    *dist(f"{LOCAL}/setuptools/_vendor", "jaraco.text", "3.12.1"),
    *dist(f"{LOCAL}/setuptools/_vendor", "packaging", "24.1"),
    *dist(f"{LOCAL}/setuptools/_vendor", "wheel", "0.43.0"),
    egg(f"{LOCAL}/zipless-0.3-py3.11.egg/EGG-INFO/PKG-INFO", "zipless", "0.3"),
]

TOP: list[Entry] = [
    *dist(VENV, "numpy", "2.1.0"),
    *dist(VENV, "numpy-other", "2.1.0"),
    *dist(VENV, "upgraded", "1.0", extra="Requires-Dist: numpy"),
    *dist(LOCAL, "editable-tool", "0.1.0"),
    entry(f"{LOCAL}/editable_tool-0.1.0.dist-info/direct_url.json", EDITABLE),
    egg("workspace/tool/src/editable_tool.egg-info/PKG-INFO", "editable-tool", "0.1.0"),
    egg("workspace/legacy/legacy.egg-info/PKG-INFO", "legacy", "9.9"),
    entry(f"{LOCAL}/legacy.egg-link", "/workspace/legacy\n."),
    *dist(RUNTIME, "openenv", "0.10.0", extra="Requires-Dist: pydantic>=2\nRequires-Dist: numpy"),
    *dist(RUNTIME, "pydantic", "2.12.0", extra="License-Expression: MIT"),
    *dist(RUNTIME, "websockets", "15.0", extra="License: BSD-3-Clause"),
    *dist("root/.local/lib/python3.11/site-packages", "websockets", "15.0"),
    *dist("home/agent/.local/lib/python3.12/site-packages", "websockets", "14.2"),
    egg("opt/old/lib/python2.7/site-packages/ancient-0.1-py2.7.egg-info", "ancient", "0.1"),
    conda("openssl", "3.3.0"),
    conda("python", "3.11.9"),
    conda("pandas", "2.2.2", "py311_0"),
    *dist(f"{CONDA}/lib/python3.11/site-packages", "pandas", "2.2.2"),
    entry(f"{LOCAL}/looks-like.txt", "Name: nothing\nVersion: 1\n"),
    entry("usr/share/doc/METADATA", "Name: nothing\nVersion: 1\n"),
]

EXPECTED: set[tuple[str, str]] = {
    *(
        (f"pkg:deb/debian/{name}&distro=debian-12" if "arch" in name else name, "/var/lib/dpkg/status")
        for name in (
            "base-files@12.4%2Bdeb12u5?arch=amd64",
            "libc6@2.36-9?arch=amd64",
            "libc6@2.36-9?arch=i386",
            "bash@5.2.15-2%2Bb2?arch=amd64",
            "git@1:2.39.5-0%2Bdeb12u2?arch=amd64",
            "perl@5.36.0-7?arch=amd64",
            "debconf@1.5.82?arch=all",
            "tzdata@2024a-0%2Bdeb12u1~rc1?arch=all",
            "waiting@1.0?arch=amd64",
        )
    ),
    *(
        (f"pkg:deb/debian/{name}@1.2-3?arch=amd64&distro=debian-12", f"/var/lib/dpkg/status.d/{name}")
        for name in ("netbase", "openssl", "libssl3")
    ),
    ("pkg:pypi/pyyaml@6.0", f"/{SITE}/PyYAML-6.0.dist-info"),
    ("pkg:pypi/pygobject@3.42.2", f"/{SITE}/PyGObject-3.42.2.egg-info"),
    ("pkg:pypi/crcmod@1.7", f"/{SITE}/crcmod-1.7.egg-info"),
    ("pkg:pypi/argcomplete@2.0.0", f"/{SITE}/argcomplete-2.0.0.egg-info"),
    ("pkg:pypi/blinker@1.5", f"/{SITE}/blinker-1.5.egg-info"),
    ("pkg:pypi/cryptography@38.0.4", f"/{SITE}/cryptography-38.0.4.dist-info"),
    ("pkg:pypi/pip@24.0", f"/{LOCAL}/pip-24.0.dist-info"),
    ("pkg:pypi/cachecontrol@0.13.1", f"/{LOCAL}/pip/_vendor/vendor.txt"),
    ("pkg:pypi/msgpack@1.0.5", f"/{LOCAL}/pip/_vendor/vendor.txt"),
    ("pkg:pypi/requests@2.31.0", f"/{LOCAL}/pip/_vendor/vendor.txt"),
    ("pkg:pypi/upgraded@2.0", f"/{LOCAL}/upgraded-2.0.dist-info"),
    ("pkg:pypi/numpy@2.1.0", f"/{LOCAL}/numpy-2.1.0.dist-info"),
    ("pkg:pypi/scipy@1.14.0", f"/{LOCAL}/scipy-1.14.0.dist-info"),
    ("pkg:pypi/six-move@1.0", f"/{LOCAL}/six_move-1.0.dist-info"),
    ("pkg:pypi/no-record@1.0", f"/{LOCAL}/no_record-1.0.dist-info"),
    ("pkg:pypi/no-record-either@0.1a1", f"/{LOCAL}/no_record_either-0.1a1.dist-info"),
    ("pkg:pypi/renamed-project@3.0", f"/{LOCAL}/original_name-3.0.dist-info"),
    ("pkg:pypi/mixed-case-name@1%212.0%2Blocal.1", f"/{LOCAL}/mixed_case_name-2.0.dist-info"),
    ("pkg:pypi/setuptools@70.0.0", f"/{LOCAL}/setuptools-70.0.0.dist-info"),
    ("pkg:pypi/jaraco-text@3.12.1", f"/{LOCAL}/setuptools/_vendor/jaraco.text-3.12.1.dist-info"),
    ("pkg:pypi/packaging@24.1", f"/{LOCAL}/setuptools/_vendor/packaging-24.1.dist-info"),
    ("pkg:pypi/wheel@0.43.0", f"/{LOCAL}/setuptools/_vendor/wheel-0.43.0.dist-info"),
    ("pkg:pypi/zipless@0.3", f"/{LOCAL}/zipless-0.3-py3.11.egg/EGG-INFO"),
    ("pkg:pypi/numpy@2.1.0", f"/{VENV}/numpy-2.1.0.dist-info"),
    ("pkg:pypi/numpy-other@2.1.0", f"/{VENV}/numpy_other-2.1.0.dist-info"),
    ("pkg:pypi/upgraded@1.0", f"/{VENV}/upgraded-1.0.dist-info"),
    ("pkg:pypi/editable-tool@0.1.0", f"/{LOCAL}/editable_tool-0.1.0.dist-info"),
    ("pkg:pypi/openenv@0.10.0", f"/{RUNTIME}/openenv-0.10.0.dist-info"),
    ("pkg:pypi/pydantic@2.12.0", f"/{RUNTIME}/pydantic-2.12.0.dist-info"),
    ("pkg:pypi/websockets@15.0", f"/{RUNTIME}/websockets-15.0.dist-info"),
    ("pkg:pypi/websockets@15.0", "/root/.local/lib/python3.11/site-packages/websockets-15.0.dist-info"),
    ("pkg:pypi/websockets@14.2", "/home/agent/.local/lib/python3.12/site-packages/websockets-14.2.dist-info"),
    ("pkg:pypi/ancient@0.1", "/opt/old/lib/python2.7/site-packages/ancient-0.1-py2.7.egg-info"),
    ("pkg:pypi/legacy@9.9", "/workspace/legacy/legacy.egg-info"),
    ("pkg:conda/openssl@3.3.0?build=h0_0&subdir=linux-64", f"/{CONDA}/conda-meta/openssl-3.3.0-h0_0.json"),
    ("pkg:conda/python@3.11.9?build=h0_0&subdir=linux-64", f"/{CONDA}/conda-meta/python-3.11.9-h0_0.json"),
    ("pkg:conda/pandas@2.2.2?build=py311_0&subdir=linux-64", f"/{CONDA}/conda-meta/pandas-2.2.2-py311_0.json"),
    ("pkg:pypi/pandas@2.2.2", f"/{CONDA}/lib/python3.11/site-packages/pandas-2.2.2.dist-info"),
}


def planted_image() -> FakeImage:
    """Three layers: packages, changes to them, and the odd ones."""
    return make_image(BOTTOM, MIDDLE, TOP)
