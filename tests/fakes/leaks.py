"""Images with planted leaks: a small history, layers out of tar entries, and one function for each kind of leak.

The clean image has a root layer and a layer with the stripped repository at `workspace/repo`. A leak adds entries to
the repository's layer, or layers above or below it, and says where it must be found.
"""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import tarfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pipeline.adapters.git import read_folder
from pipeline.derive.fixtures import make_fingerprints
from pipeline.derive.repository import make_clean_repository
from pipeline.model.oci import OCI_LAYER_GZIP, ImageConfig
from pipeline.model.record import canonical_json
from pipeline.scan.fingerprint import Fingerprint
from pipeline.scan.image import judge_image
from pipeline.scan.layer import scan_layer
from pipeline.scan.record import ImageScan, LayerScan
from pipeline.scan.rules import Rules

REPO = "workspace/repo"
BASE_TIME_S = 1_600_004_000
GIT_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.invalid",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.invalid",
    "LC_ALL": "C",
    "TZ": "UTC",
}


@dataclass(frozen=True)
class Item:
    """A tar entry of a layer."""

    path: str | bytes
    data: bytes = b""
    kind: bytes = tarfile.REGTYPE
    mode: int = 0o644
    uid: int = 0
    target: str = ""


Layers = list[list[Item]]


@dataclass(frozen=True)
class Case:
    """Layers with one leak: the layer and a prefix of the path where it must be found, and its class."""

    layers: Layers
    layer: int
    path: str
    kind: str = "future"
    reach: str = "reachable"
    rules: Rules | None = None


def git(folder: Path, *arguments: str, stdin: bytes = b"", at: int = 0) -> bytes:
    """Run git on a repository that a test made."""
    dates = {"GIT_AUTHOR_DATE": f"{1_600_000_000 + at} +0000", "GIT_COMMITTER_DATE": f"{1_600_000_000 + at} +0000"}
    done = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", "-c", "gc.auto=0", *arguments],
        cwd=folder, env=GIT_ENVIRONMENT | dates, input=stdin, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def source_text(name: str, version: int, count: int = 40) -> bytes:
    """A Python module whose lines are its own."""
    lines = [f'"""Module {name}, version {version}."""', ""]
    for number in range(count):
        token = hashlib.sha256(f"{name}{version // 3 if number % 5 else version}{number}".encode()).hexdigest()[:10]
        lines += [
            f"def {name}_{token}(value):",
            f'    """Return {token} for the {name} of case {number}."""',
            f"    return value + {number}",
            "",
        ]
    return "\n".join(lines).encode()


@dataclass
class World:
    """A repository with six commits; the fourth is the base, two are the future."""

    folder: Path

    def __post_init__(self) -> None:
        self.source = self.folder / "source"
        self.source.mkdir()
        git(self.source, "init", "-q", "-b", "main")
        for version in range(1, 7):
            (self.source / "core.py").write_bytes(source_text("core", version))
            (self.source / "README").write_bytes(b"A small package for looking things up.\n" * version)
            if version >= 5:
                (self.source / "lookup.py").write_bytes(self.future_text(version))
            git(self.source, "add", ".")
            git(self.source, "commit", "-qm", f"version {version}", at=version * 1000)
            git(self.source, "tag", f"v{version}")
        self.base = self.id_of("v4")
        self.head = self.id_of("v6")

    @staticmethod
    def future_text(version: int = 6) -> bytes:
        """A module that only the future has."""
        return source_text("lookup", version)

    def id_of(self, name: str) -> str:
        """Hex id of a revision of the source."""
        return git(self.source, "rev-parse", name).decode().strip()

    def clone(self, name: str, *arguments: str) -> Path:
        """A bare or other copy of the whole history."""
        git(self.folder, "clone", "-q", "--no-local", *arguments, str(self.source), name)
        return self.folder / name

    @cached_property
    def clean_items(self) -> list[Item]:
        """The stripped repository as layer entries."""
        clean = make_clean_repository(read_folder(self.source), self.base, REPO, keep=lambda _: False)
        kinds = {"file": tarfile.REGTYPE, "dir": tarfile.DIRTYPE, "symlink": tarfile.SYMTYPE}
        return [Item(one.path, one.data, kinds[one.kind], one.mode, one.uid, one.target) for one in clean.entries]

    @property
    def root_items(self) -> list[Item]:
        """A lower layer with nothing in it."""
        return [Item("etc", kind=tarfile.DIRTYPE, mode=0o755), Item("etc/hostname", b"image\n")]

    @cached_property
    def future_objects(self) -> list[tuple[str, bytes]]:
        """Path and content of every loose object that only the future has."""
        ids = git(self.source, "rev-list", "--objects", "--no-object-names", "v6", "^v4").decode().split()
        places = [f"objects/{one[:2]}/{one[2:]}" for one in ids]
        return [(place, (self.source / ".git" / place).read_bytes()) for place in places]

    @cached_property
    def future_prints(self) -> tuple[Fingerprint, ...]:
        """Fingerprints of the future's texts against those of the base."""
        texts = {"lookup.py": self.future_text(), "core.py": (self.source / "core.py").read_bytes()}
        ordinary = [git(self.source, "show", f"v4:{name}") for name in ("core.py", "README")]
        return make_fingerprints(texts, ordinary, "future")

    def rules(self, **more: object) -> Rules:
        """The base commit's rules."""
        return Rules(base_commits=(self.base,), **more)  # type: ignore[arg-type]

    def with_items(self, *items: Item) -> Layers:
        """The clean image with more entries in the repository's layer."""
        return [self.root_items, [*self.clean_items, *items]]


def make_tar(items: Iterable[Item], form: int = tarfile.PAX_FORMAT) -> bytes:
    """Entries as a plain tar."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form, errors="surrogateescape") as tar:
        for item in items:
            path = item.path if isinstance(item.path, str) else item.path.decode("utf-8", "surrogateescape")
            info = tarfile.TarInfo(path)
            info.type, info.mode, info.uid, info.gid, info.mtime = (
                item.kind,
                item.mode,
                item.uid,
                item.uid,
                1_600_000_000,
            )
            info.linkname, info.size = item.target, len(item.data) if item.kind == tarfile.REGTYPE else 0
            tar.addfile(info, io.BytesIO(item.data))
    return out.getvalue()


def make_gzip(plain: bytes) -> bytes:
    """One gzip member without time."""
    import gzip

    return gzip.compress(plain, 1, mtime=0)


@dataclass(frozen=True)
class Image:
    """Layer blobs and a config."""

    blobs: Sequence[bytes]
    history: tuple[str, ...] = field(default=())

    @cached_property
    def scans_digest(self) -> list[str]:
        """Digests of the blobs."""
        return ["sha256:" + hashlib.sha256(blob).hexdigest() for blob in self.blobs]

    @property
    def config(self) -> ImageConfig:
        """A config that names the layers."""
        import gzip

        diff_ids = ["sha256:" + hashlib.sha256(gzip.decompress(blob)).hexdigest() for blob in self.blobs]
        document = {
            "architecture": "amd64", "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": diff_ids},
            "history": [{"created_by": text} for text in self.history],
        }  # fmt: skip
        return ImageConfig(canonical_json(document))

    def scan(self, rules: Rules) -> tuple[ImageScan, list[LayerScan]]:
        """Scan every layer and judge."""
        layers = [scan_layer(io.BytesIO(blob), OCI_LAYER_GZIP, rules) for blob in self.blobs]
        return judge_image(layers, self.config, rules), layers


def make_image(layers: Layers) -> Image:
    """Layers of entries as an image."""
    return Image([make_gzip(make_tar(items)) for items in layers])


def tree_items(folder: Path, prefix: str, uid: int = 0) -> list[Item]:
    """A folder of the disk as entries."""
    items = [Item(prefix, kind=tarfile.DIRTYPE, mode=0o755, uid=uid)]
    for path in sorted(folder.rglob("*")):
        name = f"{prefix}/{path.relative_to(folder)}"
        if path.is_symlink():
            items.append(Item(name, kind=tarfile.SYMTYPE, mode=0o777, uid=uid, target=str(path.readlink())))
        elif path.is_dir():
            items.append(Item(name, kind=tarfile.DIRTYPE, mode=0o755, uid=uid))
        else:
            items.append(Item(name, path.read_bytes(), uid=uid))
    return items


LEAKS: dict[str, Callable[[World], Case]] = {}


def leak(function: Callable[[World], Case]) -> Callable[[World], Case]:
    """Register a kind of leak under its function's name."""
    LEAKS[function.__name__.replace("_", " ")] = function
    return function
