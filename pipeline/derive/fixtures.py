"""Fingerprints of what must not be in an image: validation fixtures, and the texts of the future history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from pipeline.errors import ConfigError
from pipeline.scan.fingerprint import Fingerprint, Forbidden, make_fingerprint, normal_lines

MAX_FIXTURE_BYTES = 16 << 20


def make_fingerprints(
    texts: Mapping[str, bytes], ordinary: Iterable[bytes] = (), kind: Forbidden = "fixture"
) -> tuple[Fingerprint, ...]:
    """Fingerprints of labelled texts, in order of label.

    `ordinary` are texts that may be anywhere (the repository at its base, licences): their lines are not distinctive,
    so a fixture that quotes them is not found in them. Lines that several fixtures share stay distinctive.
    """
    known = frozenset(line for text in ordinary for line in normal_lines(text))
    prints = (make_fingerprint(label, kind, texts[label], known) for label in sorted(texts) if texts[label])
    return tuple(one for one in prints if one.lines or one.size >= 64)


def read_fixtures(folder: Path, paths: Iterable[str]) -> dict[str, bytes]:
    """Every regular file under the named files and folders, by path below `folder`; ConfigError when one is absent."""
    texts: dict[str, bytes] = {}
    for path in paths:
        place = folder / path
        if not place.exists():
            raise ConfigError("a fixture path that does not exist", where=str(place), remedy="correct `fixtures.paths`")
        files = [place] if place.is_file() else sorted(one for one in place.rglob("*") if one.is_file())
        for file in files:
            if file.is_symlink() or file.stat().st_size > MAX_FIXTURE_BYTES:
                raise ConfigError("a fixture must be a regular file of at most 16 MiB", where=str(file))
            texts[file.relative_to(folder).as_posix()] = file.read_bytes()
    return texts
