"""The machine's Debian mirror, out of its apt sources (deb822 and one-line), or as a person names it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import ServiceError

ETC_APT = Path("/etc/apt")
KEYRINGS = Path("/usr/share/keyrings")
_CODENAMES = {"bullseye", "bookworm", "trixie", "forky", "duke", "sid", "stable", "oldstable", "testing", "unstable"}
_ONE_LINE = re.compile(r"deb\s+(?:\[(?P<options>[^\]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)(?:\s+(?P<components>.*))?")


@dataclass(frozen=True)
class DebianMirror:
    """Where Debian's archive is: `main` always, `updates` and `security` where known, and the keyrings that sign it."""

    main: str
    updates: str | None
    security: str | None
    keyrings: tuple[Path, ...]

    def to_deb822(self, suite: str, keyrings: Sequence[Path]) -> str:
        """A sources file for one suite."""
        archives = ((self.main, suite), (self.updates, f"{suite}-updates"), (self.security, f"{suite}-security"))
        signed_by = (
            "Signed-By:\n " + "\n ".join(str(path) for path in keyrings)
            if len(keyrings) > 1
            else f"Signed-By: {keyrings[0]}"
        )
        stanzas = (
            f"Types: deb\nURIs: {uri}\nSuites: {name}\nComponents: main\nArchitectures: amd64\n{signed_by}\n"
            for uri, name in archives
            if uri
        )
        return "\n".join(stanzas)


def load_mirror(named: str | None, etc_path: Path = ETC_APT, keyrings_path: Path = KEYRINGS) -> DebianMirror:
    """The mirror that a person named (a URL, or two: the security archive second), else the first of apt's sources.

    ServiceError when there is none, or no Debian archive keyring.
    """
    keyrings = _archive_keyrings(keyrings_path)
    if named:
        words = named.split()
        return DebianMirror(words[0], None, words[1] if len(words) > 1 else None, keyrings)
    found = [(uri, suite) for uri, suite in _sources(etc_path) if _is_debian(uri, suite)]
    main_uris = [uri for uri, suite in found if "-" not in suite and "/" not in suite]
    if not main_uris:
        raise ServiceError(
            "no Debian mirror in apt's sources",
            where=str(etc_path),
            remedy="name a mirror; see README, troubleshooting",
        )
    updates = next((uri for uri, suite in found if suite.endswith("-updates")), None)
    security = next((uri for uri, suite in found if suite.endswith(("-security", "/updates"))), None)
    return DebianMirror(main_uris[0], updates, security, keyrings)


def _is_debian(uri: str, suite: str) -> bool:
    return uri.startswith(("http://", "https://", "file:/")) and re.split("[-/]", suite)[0] in _CODENAMES


def _archive_keyrings(path: Path) -> tuple[Path, ...]:
    for name in ("debian-archive-keyring.gpg", "debian-archive-keyring.pgp"):
        if (path / name).is_file():
            return (path / name,)
    raise ServiceError(
        "Debian's archive keyring is not on this machine",
        where=str(path),
        remedy="apt-get install debian-archive-keyring",
    )


def _sources(etc_path: Path) -> Iterator[tuple[str, str]]:
    files = [etc_path / "sources.list", *sorted((etc_path / "sources.list.d").glob("*"))]
    for file in files:
        if not file.is_file():
            continue
        text = file.read_text(encoding="utf-8", errors="replace")
        if file.suffix == ".sources":
            yield from _deb822(text)
        elif file.suffix == ".list":
            yield from _one_line(text.splitlines())


def _deb822(text: str) -> Iterator[tuple[str, str]]:
    kept = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for stanza in re.split(r"\n\s*\n", kept):
        unfolded = re.sub(r"\n[ \t]+", " ", stanza)
        fields = {
            key.strip().lower(): value.split()
            for key, _, value in (line.partition(":") for line in unfolded.splitlines())
        }
        if "deb" in fields.get("types", []) and fields.get("enabled") != ["no"]:
            yield from (
                (uri.rstrip("/"), suite) for uri in fields.get("uris", []) for suite in fields.get("suites", [])
            )


def _one_line(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        match = _ONE_LINE.fullmatch(line.partition("#")[0].strip())
        if match:
            yield match["uri"].rstrip("/"), match["suite"]
