"""The images derived again, from a copy of the release's inputs in another folder: is every digest the same?

Layers of Debian packages and wheels come from the cache; the strip, the repository, the file sets, config and manifest
are made anew. No container is started and no suite is run.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from pipeline.errors import PipelineError
from pipeline.layout import Layout
from pipeline.model.oci import ImageConfig, Manifest
from pipeline.plan import PlannedImage
from pipeline.scan.record import ImageScan
from pipeline.stages.build import BuildPorts, Derived, derive_image
from pipeline.stages.examiner import Examination
from pipeline.stages.scan import scan_store
from pipeline.stages.scanning import FolderCache, make_rules
from pipeline.world import World

INPUTS = ("release.yaml", "policies", "images", "pipeline", "requirements.lock")


class _ScanOnly:
    """`stages.examiner.Examiner` for images that are compared and never run."""

    def __init__(self, world: World) -> None:
        self._world = world

    def scan(self, image: PlannedImage, layout: Layout, manifest: Manifest, config: ImageConfig) -> ImageScan:
        cache = FolderCache(self._world.paths.cache / "scans")
        return scan_store(layout, manifest, make_rules(self._world.plan, image), cache)[0]

    def check(self, image: PlannedImage, manifest: Manifest, config: ImageConfig, image_id: str) -> Examination:
        raise PipelineError("an image that is derived for comparison is not run", where=image.id)

    def stop(self) -> None:
        pass


def copy_inputs(root: Path, folder: Path, cache: Path) -> Path:
    """What a build reads, written anew under this process's umask, beside the shared cache; the release file there."""
    for name in INPUTS:
        source = root / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"), copy_function=_copy)
        else:
            _copy(str(source), str(folder / name))
    (folder / ".pipeline").mkdir()
    (folder / ".pipeline" / "cache").symlink_to(cache)
    return folder / "release.yaml"


def derive_digests(here: World, there: World, revision: str) -> Mapping[str, str]:
    """Manifest digest by image id of the copy `there`, with the sources and the registry of `here`."""
    from pipeline.adapters.git import prove_clean

    ports = BuildPorts(
        here.anonymous,
        here.credentialed if here.is_embedded else None,
        here.sources,
        here.engine,
        _ScanOnly(there),
        there.reporter,
        revision,
        here.environment,
        prove_clean,
        here.examine_vendored,
    )
    derived: dict[str, Derived] = {}
    for image in there.plan.images:
        derived[image.id] = derive_image(there.plan, image, there.paths, ports, derived)
    return {name: one.made.manifest.digest for name, one in derived.items()}


def _copy(source: str, target: str) -> str:
    # content and the executable bit, as a clone writes it; the rest of the mode is what the umask leaves
    shutil.copyfile(source, target)
    if Path(source).stat().st_mode & 0o100:
        Path(target).chmod(Path(target).stat().st_mode | 0o100)
    return target
