"""The operating system of a root, and which package databases it has. See os-release(5)."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from pipeline.errors import HostileInputError
from pipeline.sbom.rootfs import RootView

PATHS = ("etc/os-release", "usr/lib/os-release")
_MAX_BYTES = 64 << 10


@dataclass(frozen=True)
class OperatingSystem:
    """From os-release; `family` is `id` and what it is like. Empty strings where the root has no such file."""

    id: str = ""
    version_id: str = ""
    name: str = ""
    pretty_name: str = ""
    family: tuple[str, ...] = ()
    layer: int = 0

    @property
    def distro(self) -> str:
        """The `distro` qualifier of Debian package URLs, such as debian-12; empty when unknown."""
        return "-".join(part for part in (self.id, self.version_id) if part)


def load_operating_system(root: RootView) -> OperatingSystem:
    """Parse os-release; HostileInputError when it is longer than any of them."""
    found = next((file for file in map(root.find, PATHS) if file is not None), None)
    if found is None:
        return OperatingSystem()
    if len(found.data) > _MAX_BYTES:
        raise HostileInputError(f"os-release of {len(found.data)} bytes", where=found.path)
    values = dict(_assignments(found.data.decode("utf-8", "replace")))
    identity = values.get("ID", "linux")
    return OperatingSystem(
        id=identity,
        version_id=values.get("VERSION_ID", ""),
        name=values.get("NAME", identity),
        pretty_name=values.get("PRETTY_NAME", ""),
        family=(identity, *values.get("ID_LIKE", "").split()),
        layer=found.layer,
    )


def _assignments(text: str) -> list[tuple[str, str]]:
    pairs = []
    for line in text.splitlines():
        key, equals, value = line.strip().partition("=")
        if equals and key.isidentifier():
            pairs.append((key, _unquoted(value)))
    return pairs


def _unquoted(value: str) -> str:
    try:
        return "".join(shlex.split(value)[:1])
    except ValueError:
        return value
