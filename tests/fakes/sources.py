"""Sources of a task image in memory: a Debian root, its packages, and a real git history with a future to strip."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from pipeline.config import ImageSource
from pipeline.derive.image import DEFAULT_PATH, make_manifest
from pipeline.derive.layer import Entry
from pipeline.embedded.archives import ArchivedFile
from pipeline.embedded.githistory import History, Version, make_history
from pipeline.layout import Layout
from pipeline.model.material import Material
from pipeline.model.oci import ImageConfig, Manifest
from pipeline.model.record import canonical_json
from pipeline.model.release import Layer, RemovedFunction, RepositoryRecipe
from pipeline.model.stages import LayerRecord
from pipeline.stages.assemble import record_of, store_layer
from tests.fakes.images import EPOCH_S, entry
from tests.fakes.planted import OS_RELEASE, deb, dist

CWD = "workspace/repo"
RECIPE = RepositoryRecipe(
    project="lookup",
    lock="sdists.lock",
    base_version="2.0",
    removed=(RemovedFunction(file="lookup.py", function="get"),),
)
WHEEL = Material(
    uri="pkg:pypi/openenv@0.3.1", name="openenv", version="0.3.1", kind="wheel", digests={"sha256": "a" * 64}
)
DEB = Material(
    uri="pkg:deb/debian/bash@5.2.15-2?arch=amd64",
    name="bash",
    version="5.2.15-2",
    kind="debian-package",
    digests={"sha256": "b" * 64},
)


def _source(version: str) -> str:
    lines = "".join(f"    # what {version} knows of substance {number}: {number * 7919}\n" for number in range(12))
    functions = f"def find(name):\n{lines}    return name\n\n\ndef get(key):\n    return TABLE[key]\n"
    return f'VERSION = "{version}"\n\n\n{functions}'


@cache
def make_tiny_history() -> History:
    """Four versions: two that are the past, the base, and one that is the future."""
    versions = [
        Version(number, f"lookup-{number}.tar.gz", {"lookup.py": ArchivedFile(_source(number).encode(), 0o644)})
        for number in ("1.0", "1.5", "2.0", "3.0")
    ]
    return make_history(RECIPE, versions, "task.yaml", EPOCH_S)


@dataclass(frozen=True)
class MadeImage:
    """`stages.bases.SourceImage`."""

    manifest: Manifest
    base_commit: str
    materials: tuple[Material, ...]


@dataclass(frozen=True)
class MadeLayer:
    """`stages.bases.SourceLayer`."""

    layer: LayerRecord
    materials: tuple[Material, ...]


@dataclass
class FakeSources:
    """`stages.bases.Sources`; `base_commit` is what the rebuilt repository turns out to have. `made` counts images."""

    base_commit: str = field(default_factory=lambda: make_tiny_history().base_commit)
    made: int = 0

    def make_task_image(self, image: ImageSource, store: Layout, epoch_s: int) -> MadeImage:
        """Root, packages, and the repository with its future."""
        self.made += 1
        root = [entry("etc/os-release", OS_RELEASE), entry("var/lib/dpkg/status", deb("bash", "5.2.15-2"))]
        contents = {"debian": root, "packages": dist("usr/lib/python3/dist-packages", "numpy", "1.24.2")}
        contents["repository"] = [Entry(CWD, "dir", uid=2000, gid=2000), *_under(CWD, make_tiny_history())]
        layers = [record_of(name, "base", store_layer(made, store, epoch_s)) for name, made in contents.items()]
        config = ImageConfig(
            canonical_json(
                {
                    "architecture": "amd64",
                    "os": "linux",
                    "config": {"Env": [DEFAULT_PATH], "Cmd": ["/bin/bash"]},
                    "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
                }
            )
        )
        store.write_bytes(config.raw)
        manifest = make_manifest(config, layers)
        store.write_bytes(manifest.raw)
        return MadeImage(manifest, self.base_commit, (DEB,))

    def make_wheel_layer(self, image: ImageSource, layer: Layer, store: Layout, epoch_s: int) -> MadeLayer:
        """The runtime: one distribution."""
        assert layer.path is not None
        holder = Entry("opt/arena", "dir", mode=0o700)
        entries = [holder, *dist(layer.path.strip("/"), "openenv", "0.3.1")]
        return MadeLayer(record_of(layer.name, "added", store_layer(entries, store, epoch_s)), (WHEEL,))


def _under(folder: str, history: History) -> list[Entry]:
    return [Entry(f"{folder}/{e.path}", e.kind, e.data, e.mode, e.uid, e.gid, e.target) for e in history.entries]
