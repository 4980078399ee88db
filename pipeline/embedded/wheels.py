"""Wheels into entries of a layer: checked against their RECORD, never executed, without what no program reads.

Format: https://packaging.python.org/en/latest/specifications/binary-distribution-format/
"""

from __future__ import annotations

import base64
import configparser
import csv
import email.parser
import hashlib
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.derive.layer import Entry
from pipeline.embedded.archives import ArchivedFile, read_archive
from pipeline.embedded.filecache import FileCache
from pipeline.embedded.locks import LockedWheel, normal_name
from pipeline.errors import HostileInputError
from pipeline.model.material import Material

# Test suites, type stubs, and the sources and archives of compiled modules: nothing imports them.
_DROPPED = re.compile(r"(?:.*/)?(?:tests?|__pycache__)/.*|.*\.(?:pyi|pyx|pxd|pxi|c|cc|cpp|h|hpp|f|f90|a|lib|pc)$")
_SIGNATURES = ("RECORD.jws", "RECORD.p7s")
_SCRIPT = """#!/usr/bin/python3
import sys

from {module} import {attribute}

if __name__ == "__main__":
    sys.exit({call}())
"""


@dataclass(frozen=True)
class Destination:
    """Where wheels go in an image, relative: modules, and scripts unless that is empty (then there are none)."""

    modules: str
    scripts: str = ""


def make_entries(
    wheels: Sequence[LockedWheel], destination: Destination, cache: FileCache
) -> tuple[tuple[Entry, ...], tuple[Material, ...]]:
    """Unpack cached wheels; returns entries (owner root) and one material a wheel.

    HostileInputError for a wheel that is damaged, leaves its folder, differs from its RECORD or is another project.
    """
    entries = [entry for wheel in wheels for entry in _unpack(wheel, destination, cache.read(wheel.sha256))]
    return tuple(entries), tuple(make_material(wheel) for wheel in wheels)


def make_material(wheel: LockedWheel) -> Material:
    """What provenance says of a wheel."""
    uri = f"pkg:pypi/{normal_name(wheel.name)}@{wheel.version}"
    return Material(uri=uri, name=wheel.name, version=wheel.version, kind="wheel", digests={"sha256": wheel.sha256})


def _unpack(wheel: LockedWheel, destination: Destination, data: bytes) -> Iterator[Entry]:
    where = f"{wheel.name} {wheel.version}"
    files = read_archive(data, where)
    info = _dist_info(files, wheel, where)
    _check_record(files, f"{info}/RECORD", where)
    kept = {name: file for name, file in files.items() if not _DROPPED.fullmatch(name)}
    placed = {name: path for name in kept if (path := _place(name, info, destination))}
    for name, path in placed.items():
        content = kept[name].data
        if name == f"{info}/RECORD":
            content = _record_of(content, set(placed))
        if path.startswith(f"{destination.scripts}/") and content.startswith(b"#!python"):
            content = b"#!/usr/bin/python3" + content[len(b"#!python") :]
        yield Entry(path, data=content, mode=kept[name].mode)
    if destination.scripts:
        yield from _console_scripts(_data(files, f"{info}/entry_points.txt"), destination.scripts, where)


def _dist_info(files: dict[str, ArchivedFile], wheel: LockedWheel, where: str) -> str:
    folders = {name.partition("/")[0] for name in files if re.match(r"[^/]+\.dist-info/", name)}
    if len(folders) != 1:
        raise HostileInputError(f"a wheel with {len(folders)} .dist-info folders", where=where)
    folder = folders.pop()
    metadata = email.parser.BytesHeaderParser().parsebytes(_data(files, f"{folder}/METADATA"))
    name, version = str(metadata.get("Name", "")), str(metadata.get("Version", ""))
    if normal_name(name) != normal_name(wheel.name) or version != wheel.version:
        raise HostileInputError(f"the wheel is {name} {version}, not what the lock says", where=where)
    return folder


def _check_record(files: dict[str, ArchivedFile], record: str, where: str) -> None:
    rows = _rows(_data(files, record), where)
    expected = {row[0]: row[1] for row in rows if len(row) == 3}
    unlisted = {name for name in files if name not in expected and not name.endswith(_SIGNATURES)}
    if unlisted:
        raise HostileInputError(f"a wheel holds what its RECORD does not list: {min(unlisted)!r}", where=where)
    for name, hashed in expected.items():
        if name == record or name.endswith(_SIGNATURES):
            continue
        if name not in files or not _has_hash(files[name].data, hashed):
            raise HostileInputError(f"a file of a wheel differs from its RECORD: {name!r}", where=where)


def _data(files: dict[str, ArchivedFile], name: str) -> bytes:
    return files[name].data if name in files else b""


def _has_hash(content: bytes, hashed: str) -> bool:
    algorithm, _, value = hashed.partition("=")
    if algorithm not in ("sha256", "sha384", "sha512"):
        return False
    digest = hashlib.new(algorithm, content).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == value


def _rows(raw: bytes, where: str) -> list[list[str]]:
    try:
        return list(csv.reader(io.StringIO(raw.decode("utf-8"))))
    except (UnicodeDecodeError, csv.Error) as error:
        raise HostileInputError(f"an unreadable RECORD: {error}", where=where) from error


def _record_of(raw: bytes, names: set[str]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(row for row in _rows(raw, "RECORD") if row and row[0] in names)
    return out.getvalue().encode()


def _place(name: str, info: str, destination: Destination) -> str:
    """The path in the image; empty for what is not installed."""
    data_folder = info.removesuffix(".dist-info") + ".data/"
    if not name.startswith(data_folder):
        return f"{destination.modules}/{name}"
    scheme, _, rest = name.removeprefix(data_folder).partition("/")
    if scheme in ("purelib", "platlib"):
        return f"{destination.modules}/{rest}"
    if scheme == "scripts" and destination.scripts:
        return f"{destination.scripts}/{rest}"
    # Headers, and data outside of the package (manual pages, desktop files), serve no program in the image.
    return ""


def _console_scripts(raw: bytes, folder: str, where: str) -> Iterator[Entry]:
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read_string(raw.decode("utf-8"))
    except (UnicodeDecodeError, configparser.Error) as error:
        raise HostileInputError(f"unreadable entry points: {error}", where=where) from error
    for name, target in sorted(parser["console_scripts"].items() if parser.has_section("console_scripts") else ()):
        match = re.fullmatch(r"([A-Za-z_][\w.]*)\s*:\s*([A-Za-z_]\w*)((?:\.\w+)*)(?:\s*\[.*\])?", target)
        if match is None or not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
            raise HostileInputError(f"an unsafe entry point: {name} = {target}", where=where)
        script = _SCRIPT.format(module=match[1], attribute=match[2], call=match[2] + match[3])
        yield Entry(f"{folder}/{name}", data=script.encode(), mode=0o755)
