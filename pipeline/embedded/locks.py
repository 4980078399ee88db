"""Lock files of package sources: wheels as pip requirements with hashes, sdists as `version sha256 file`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import ConfigError

_WHEEL = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[A-Za-z0-9.!+_-]+)\s+--hash=sha256:(?P<sha256>[0-9a-f]{64})"
)
_SDIST = re.compile(r"(?P<version>[0-9][A-Za-z0-9.]*)\s+(?P<sha256>[0-9a-f]{64})\s+(?P<file>[A-Za-z0-9._-]+)")


@dataclass(frozen=True)
class LockedWheel:
    """One line of a wheel lock. One hash, so one file: the wheel of the image's Python and platform."""

    name: str
    version: str
    sha256: str

    @property
    def requirement(self) -> str:
        """The line, as pip reads it."""
        return f"{self.name}=={self.version} --hash=sha256:{self.sha256}"


@dataclass(frozen=True)
class LockedSdist:
    """One line of an sdist lock."""

    version: str
    sha256: str
    file_name: str


def load_wheel_lock(path: Path) -> tuple[LockedWheel, ...]:
    """Parse a wheel lock; ConfigError with file:line for a line that is not pinned, or a project named twice."""
    seen: dict[str, LockedWheel] = {}
    for where, line in _lines(path):
        match = _WHEEL.fullmatch(line)
        if match is None:
            raise ConfigError(
                f"not a pinned wheel: {line!r}", where=where, remedy="write NAME==VERSION --hash=sha256:HEX, one a line"
            )
        wheel = LockedWheel(match["name"], match["version"], match["sha256"])
        key = normal_name(wheel.name)
        if key in seen:
            raise ConfigError(f"project locked twice: {wheel.name}", where=where, remedy="keep one of the lines")
        seen[key] = wheel
    return tuple(seen.values())


def load_sdist_lock(path: Path) -> tuple[LockedSdist, ...]:
    """Parse an sdist lock, oldest version first as written; ConfigError with file:line."""
    seen: dict[str, LockedSdist] = {}
    for where, line in _lines(path):
        match = _SDIST.fullmatch(line)
        if match is None:
            raise ConfigError(
                f"not a pinned sdist: {line!r}", where=where, remedy="write VERSION SHA256 FILE, one a line"
            )
        if match["version"] in seen:
            raise ConfigError(f"version locked twice: {match['version']}", where=where, remedy="keep one of the lines")
        seen[match["version"]] = LockedSdist(match["version"], match["sha256"], match["file"])
    return tuple(seen.values())


def normal_name(name: str) -> str:
    """A project name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _lines(path: Path) -> list[tuple[str, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the lock: {error}", where=str(path)) from error
    numbered = [
        (f"{path}:{number}", line.partition("#")[0].strip()) for number, line in enumerate(text.splitlines(), 1)
    ]
    lines = [(where, line) for where, line in numbered if line]
    if not lines:
        raise ConfigError("the lock is empty", where=str(path))
    return lines
