"""Source distributions as the files of a repository: unpacked in memory, nothing of them built or executed."""

from __future__ import annotations

import re

from pipeline.embedded.archives import ArchivedFile, read_archive
from pipeline.embedded.filecache import FileCache
from pipeline.embedded.locks import LockedSdist, normal_name
from pipeline.errors import HostileInputError
from pipeline.model.material import Material

# What `sdist` adds, and what a machine of the packager left: none of it was in the project's own repository.
_NOT_SOURCE = re.compile(r"PKG-INFO|(?:.*/)?[^/]+\.egg-info/.*|.*\.py[co]|(?:.*/)?(?:__pycache__/.*|\.DS_Store)")


def read_sdist(sdist: LockedSdist, cache: FileCache) -> dict[str, ArchivedFile]:
    """The source files of a cached sdist by path below its one top folder.

    HostileInputError for an archive that is damaged, breaks a limit, or holds a part named `.git`.
    """
    files: dict[str, ArchivedFile] = {}
    for name, file in read_archive(cache.read(sdist.sha256), sdist.file_name).items():
        _, _, path = name.partition("/")
        if ".git" in [part.lower() for part in path.split("/")]:
            raise HostileInputError(f"an sdist that brings a git folder: {name!r}", where=sdist.file_name)
        if path and not _NOT_SOURCE.fullmatch(path):
            files[path] = file
    if not files:
        raise HostileInputError("an sdist without files", where=sdist.file_name)
    return files


def make_material(project: str, sdist: LockedSdist) -> Material:
    """What provenance says of an sdist."""
    uri = f"pkg:pypi/{normal_name(project)}@{sdist.version}?file_name={sdist.file_name}"
    return Material(
        uri=uri,
        name=project,
        version=sdist.version,
        kind="sdist",
        digests={"sha256": sdist.sha256},
        file_name=sdist.file_name,
    )
