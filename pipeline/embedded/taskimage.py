"""Task images of the local target, out of Debian packages, wheels and source distributions.

Three layers: a Debian root, what the task's repository imports, and the repository with its future.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pipeline.derive.image import DEFAULT_PATH, format_time, make_manifest
from pipeline.derive.layer import Entry
from pipeline.embedded import sdists as sdists_module
from pipeline.embedded.bytecode import make_bytecode
from pipeline.embedded.debianroot import PYTHON_VERSIONS, DebianRoot, fetch_root
from pipeline.embedded.filecache import FileCache
from pipeline.embedded.githistory import OWNER, History, Version, make_history
from pipeline.embedded.layercache import Content, LayerCache, SourceLayer
from pipeline.embedded.locks import LockedSdist, LockedWheel, load_sdist_lock, load_wheel_lock
from pipeline.embedded.pip_source import fetch_sdists, fetch_wheels
from pipeline.embedded.wheels import Destination, make_entries
from pipeline.errors import ConfigError
from pipeline.model.material import Material
from pipeline.model.oci import ImageConfig, Manifest
from pipeline.model.record import canonical_json
from pipeline.model.release import Debian, ImageDefinition, TaskDefinition
from pipeline.ports import BlobStore

Report = Callable[[str], None]


@dataclass(frozen=True)
class TaskImage:
    """A task image in a blob store, and what it was made from. `notes` are for a person, such as skipped bytecode."""

    manifest: Manifest
    base_commit: str
    materials: tuple[Material, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Sources:
    """Where sources come from and where they are kept: a cache folder, and a Debian mirror unless the machine's own."""

    cache_path: Path
    debian_mirror: str | None = None

    @property
    def files(self) -> FileCache:
        """Downloads by SHA-256."""
        return FileCache(self.cache_path / "files")

    def layers(self, epoch_s: int) -> LayerCache:
        """Built layers by the digest of their inputs."""
        return LayerCache(self.cache_path / "layers", epoch_s)

    def remove_leftovers(self) -> None:
        """Remove what killed runs left in the cache. Call it with the pipeline's lock held, before anything is made."""
        self.files.remove_leftovers()
        self.layers(0).remove_leftovers()


def make_task_image(
    definition: ImageDefinition,
    task: TaskDefinition,
    task_path: Path,
    sources: Sources,
    store: BlobStore,
    epoch_s: int,
    report: Report = lambda _: None,
) -> TaskImage:
    """Make the image of a task in `store`; `task_path` is the folder that the task's relative paths start from.

    ConfigError for a lock, record or commit that does not fit; ServiceError when a package source does not answer;
    IntegrityError for bytes that are not the locked ones. Parts that did not change come from the cache.
    """
    # 1. Read what is asked for.
    debian = _debian_of(definition)
    wheels = load_wheel_lock(task_path / task.packages)
    sdists = load_sdist_lock(task_path / task.repository.lock)
    folder = _repository_path(task_path / task.record)
    cache = sources.layers(epoch_s)
    # 2. Fetch, all sources at once: each waits for another server.
    report("fetching Debian packages, wheels and source distributions")
    root = _fetch(debian, wheels, task.repository.project, sdists, sources)
    # 3. The root, and what the repository imports.
    report("making the Debian root")
    root_layer = cache.fetch("debian", root.inputs, root.make_content, store)
    report("unpacking the task's packages")
    packages = _packages_layer(root, wheels, sources, cache, store)
    # 4. The repository, from every locked version.
    report(f"rebuilding {task.repository.project} from {len(sdists)} source distributions")
    repository, commit = _repository_layer(task, sdists, folder, sources, cache, store)
    if commit != task.base_commit:
        raise ConfigError(
            f"the repository's base commit is {commit}, the task says {task.base_commit}",
            where=str(task_path / "task.yaml"),
            remedy=f"write base_commit: {commit} when the change is meant",
        )
    # 5. Config and manifest.
    layers = (root_layer, packages, repository)
    manifest = _write_manifest(layers, folder, store, epoch_s)
    materials = tuple(material for layer in layers for material in layer.materials)
    return TaskImage(manifest, commit, materials, tuple(note for layer in layers for note in layer.notes))


def make_wheel_layer(
    lock_path: Path, destination: str, debian: Debian, sources: Sources, store: BlobStore, epoch_s: int
) -> SourceLayer:
    """The layer of a wheel lock, under `destination` (absolute) in the image; the same bytes in every image.

    The folder that holds `destination` is root's alone (0700). Errors as `make_task_image`.
    """
    wheels = load_wheel_lock(lock_path)
    root = fetch_root(debian, sources.debian_mirror, sources.cache_path)
    fetch_wheels(wheels, root.python_version, sources.files)
    place = Destination(destination.strip("/"))
    holder = Entry(place.modules.rpartition("/")[0], "dir", mode=0o700)
    inputs = [place.modules, [wheel.requirement for wheel in wheels], root.inputs]
    return sources.layers(epoch_s).fetch(
        lock_path.stem, inputs, lambda: _wheel_content(wheels, place, root, sources, (holder,)), store
    )


def _debian_of(definition: ImageDefinition) -> Debian:
    if definition.debian is None:
        raise ConfigError(
            "the local target needs a debian section", where=definition.title, remedy="name suite and packages"
        )
    return definition.debian


def _repository_path(record_path: Path) -> str:
    """The record's `cwd`, relative to the root."""
    try:
        cwd = json.loads(record_path.read_bytes())["cwd"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigError(f"not a task record with cwd: {error}", where=str(record_path)) from error
    parts = cwd.split("/") if isinstance(cwd, str) else []
    if len(parts) < 2 or parts[0] or {"", ".", ".."} & set(parts[1:]):
        raise ConfigError(f"cwd must be an absolute, normal path: {cwd!r}", where=str(record_path))
    return "/".join(parts[1:])


def _fetch(
    debian: Debian, wheels: tuple[LockedWheel, ...], project: str, sdists: tuple[LockedSdist, ...], sources: Sources
) -> DebianRoot:
    with ThreadPoolExecutor(3) as pool:
        root = pool.submit(fetch_root, debian, sources.debian_mirror, sources.cache_path)
        history = pool.submit(fetch_sdists, project, sdists, sources.files)
        packages = pool.submit(fetch_wheels, wheels, PYTHON_VERSIONS[debian.suite], sources.files)
        history.result()
        packages.result()
        return root.result()


def _packages_layer(
    root: DebianRoot, wheels: tuple[LockedWheel, ...], sources: Sources, cache: LayerCache, store: BlobStore
) -> SourceLayer:
    place = Destination(f"usr/local/lib/python{root.python_version}/dist-packages", "usr/local/bin")
    inputs = [place.modules, place.scripts, [wheel.requirement for wheel in wheels], root.inputs]
    return cache.fetch("packages", inputs, lambda: _wheel_content(wheels, place, root, sources), store)


def _wheel_content(
    wheels: tuple[LockedWheel, ...],
    place: Destination,
    root: DebianRoot,
    sources: Sources,
    further: tuple[Entry, ...] = (),
) -> Content:
    entries, materials = make_entries(wheels, place, sources.files)
    bytecode = make_bytecode(root.python(), (*entries, *further))
    return Content((*entries, *further, *bytecode.entries), materials, bytecode.notes)


def _repository_layer(
    task: TaskDefinition,
    sdists: tuple[LockedSdist, ...],
    folder: str,
    sources: Sources,
    cache: LayerCache,
    store: BlobStore,
) -> tuple[SourceLayer, str]:
    recipe = task.repository
    inputs = [recipe.model_dump(mode="json"), [[s.version, s.sha256, s.file_name] for s in sdists], folder]

    def make() -> Content:
        versions = [Version(s.version, s.file_name, sdists_module.read_sdist(s, sources.files)) for s in sdists]
        history = make_history(recipe, versions, task.id, cache.epoch_s)
        materials = [sdists_module.make_material(recipe.project, sdist) for sdist in sdists]
        return Content(_under(folder, history), (*materials, _commit_material(recipe.project, history)))

    layer = cache.fetch("repository", inputs, make, store)
    return layer, layer.materials[-1].version


def _under(folder: str, history: History) -> list[Entry]:
    inside = [Entry(f"{folder}/{e.path}", e.kind, e.data, e.mode, e.uid, e.gid, e.target) for e in history.entries]
    return [Entry(folder, "dir", mode=0o755, uid=OWNER, gid=OWNER), *inside]


def _commit_material(project: str, history: History) -> Material:
    """The base commit, which `TaskImage` reads back. The commits of the future are no input of anything."""
    uri = f"git+https://example.invalid/{project}@{history.base_commit}"
    commit = history.base_commit
    return Material(uri=uri, name=project, version=commit, kind="git-commit", digests={"gitCommit": commit})


def _write_manifest(layers: tuple[SourceLayer, ...], folder: str, store: BlobStore, epoch_s: int) -> Manifest:
    created = format_time(epoch_s)
    document = {
        "architecture": "amd64",
        "os": "linux",
        "created": created,
        "config": {"Env": [DEFAULT_PATH], "WorkingDir": f"/{folder}", "Cmd": ["/bin/bash"]},
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
        "history": [{"created": created, "created_by": f"base: {layer.name}"} for layer in layers],
    }
    config = ImageConfig(canonical_json(document))
    store.write_bytes(config.raw)
    return make_manifest(config, [layer.layer for layer in layers])
