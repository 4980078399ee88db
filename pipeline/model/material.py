"""Resolved inputs of a build, as provenance lists them (SLSA v1, `resolvedDependencies`)."""

from __future__ import annotations

from typing import Literal

from pipeline.model.record import Record

MaterialKind = Literal["debian-package", "wheel", "sdist", "git-commit", "file"]


class Material(Record):
    """One input: a package URL or git URI, and the digest of the exact bytes that were used.

    `digests` maps an algorithm (`sha256`, `gitCommit`) to lower-case hex. `file_name` is empty where there is no file.
    """

    uri: str
    name: str
    version: str
    kind: MaterialKind
    digests: dict[str, str]
    file_name: str = ""
