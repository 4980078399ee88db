"""Debian packages through apt-get with a configuration, state, package lists and keyrings of our own.

The machine's release does not matter: the suite is the image's. From the machine come only the mirror, the transport
settings (proxy, retries) and Debian's archive keyring. Indexes must be signed; apt-get checks every file against them.
"""

from __future__ import annotations

import atexit
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from pipeline.embedded.aptsources import DebianMirror
from pipeline.errors import ServiceError
from pipeline.files import write_atomic

TIMEOUT_S = 600
_URI_LINE = re.compile(r"'(?P<uri>[^']+)' (?P<file>[^ /]+_[^ /]+_[^ /]+\.deb) (?P<size>\d+) ?\S*")
# Of the host's settings only how to reach a mirror is taken; never a hook, a folder or a weaker check of signatures.
_TRANSPORT = re.compile(
    r"Acquire::(?:https?::|Retries|ForceIPv[46]|Check-Valid-Until|Check-Date|Max-ValidTime|Queue-Mode)"
)


@dataclass(frozen=True, order=True)
class ResolvedDeb:
    """A package that apt resolved, before it is fetched."""

    name: str
    version: str
    architecture: str
    file_name: str


class Apt:
    """apt-get for one suite, with everything below `path`."""

    def __init__(self, path: Path, suite: str, mirror: DebianMirror) -> None:
        self._path, self._suite, self._mirror = _without_white_space(path), suite, mirror

    def update(self) -> None:
        """Write the configuration and fetch the signed indexes. ServiceError when that fails."""
        for folder in ("state/lists/partial", "cache/archives/partial", "sources", "keyrings"):
            (self._path / folder).mkdir(parents=True, exist_ok=True)
        keyrings = [self._keep_keyring(keyring) for keyring in self._mirror.keyrings]
        write_atomic(self._path / "status", b"")
        write_atomic(self._path / "sources" / "debian.sources", self._mirror.to_deb822(self._suite, keyrings).encode())
        write_atomic(self._path / "apt.conf", self._configuration().encode())
        self._run(["update", "-qq"])

    def resolve(self, packages: Sequence[str]) -> tuple[ResolvedDeb, ...]:
        """What the packages and everything that they depend on are in this suite, sorted by name."""
        lines = self._run(["install", "-qq", "--yes", "--print-uris", *packages]).splitlines()
        matches = [match for line in lines if (match := _URI_LINE.fullmatch(line.strip()))]
        if not matches:
            raise ServiceError(
                "apt-get resolved no package", where=self._suite, remedy="look at the image's package list"
            )
        return tuple(sorted(_resolved(match["file"]) for match in matches))

    def download(self, debs: Sequence[ResolvedDeb], destination: Path) -> tuple[Path, ...]:
        """Fetch exactly these into a folder; apt-get checks each against the signed index."""
        destination.mkdir(parents=True, exist_ok=True)
        names = [
            f"{deb.name}:{deb.architecture}={deb.version}" if deb.architecture != "all" else f"{deb.name}={deb.version}"
            for deb in debs
        ]
        self._run(["download", "-qq", *names], folder=destination)
        return tuple(destination / deb.file_name for deb in debs)

    def _configuration(self) -> str:
        path = self._path
        settings = {
            "Dir::State": f"{path}/state",
            "Dir::State::status": f"{path}/status",
            "Dir::Cache": f"{path}/cache",
            "Dir::Etc::SourceList": "/dev/null",
            "Dir::Etc::SourceParts": f"{path}/sources",
            "Dir::Etc::Preferences": "/dev/null",
            "Dir::Etc::PreferencesParts": "/dev/null",
            "Dir::Etc::Main": "/dev/null",
            "Dir::Etc::Parts": "/dev/null",
            "Dir::Etc::TrustedParts": f"{path}/keyrings",
            "APT::Architecture": "amd64",
            "APT::Architectures": "amd64",
            "APT::Install-Recommends": "false",
            "APT::Install-Suggests": "false",
            "APT::Sandbox::User": "root",
            "APT::Get::AllowUnauthenticated": "false",
            "Acquire::AllowInsecureRepositories": "false",
            "Acquire::AllowWeakRepositories": "false",
            "Acquire::AllowDowngradeToInsecureRepositories": "false",
            "Acquire::Languages": "none",
        }
        return _host_transport() + "".join(f'{name} "{value}";\n' for name, value in settings.items())

    def _keep_keyring(self, keyring: Path) -> Path:
        copy = self._path / "keyrings" / keyring.name
        write_atomic(copy, keyring.read_bytes())
        copy.chmod(0o644)
        return copy

    def _run(self, arguments: list[str], folder: Path | None = None) -> str:
        # APT_CONFIG is read before the machine's own files, which the setting of Dir::Etc::Parts then hides.
        command = ["/usr/bin/env", f"APT_CONFIG={self._path}/apt.conf", "LC_ALL=C", "apt-get", *arguments]
        return _output(command, folder)


def _without_white_space(path: Path) -> Path:
    """The folder, by another name where its own has white space: apt takes that for the end of a Signed-By path."""
    if not re.search(r"\s", str(path)):
        return path
    path.mkdir(parents=True, exist_ok=True)
    alias = Path(tempfile.mkdtemp(prefix="pipeline-apt-")) / "apt"
    atexit.register(shutil.rmtree, alias.parent, ignore_errors=True)
    alias.symlink_to(path.resolve())
    return alias


def _resolved(file_name: str) -> ResolvedDeb:
    name, version, architecture = file_name.removesuffix(".deb").split("_")
    return ResolvedDeb(name, unquote(version), architecture, file_name)


def _host_transport() -> str:
    if shutil.which("apt-config") is None:
        raise ServiceError("apt-get is not on this machine", remedy="build on Debian or Ubuntu")
    dump = _output(["apt-config", "dump"], None).splitlines()
    return "".join(f"{line}\n" for line in dump if _TRANSPORT.match(line) and line.endswith('";'))


def _output(command: list[str], folder: Path | None) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise ServiceError(
            f"apt-get did not finish in {TIMEOUT_S} s", remedy="the mirror is slow; try again"
        ) from error
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.startswith("E:")] or done.stderr.splitlines()
        raise ServiceError(f"apt-get failed: {' | '.join(lines[-3:])[:600]}", remedy="check the mirror and the network")
    return done.stdout
