"""Our SBOM beside syft's, on the same OCI layout: every difference is explained by a rule, and every rule is needed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from packaging.utils import canonicalize_name

from pipeline.sbom.document import SbomSubject, make_sbom, want
from pipeline.sbom.rootfs import read_root
from pipeline.sbom.view import SbomComponent, load_sbom
from tests.fakes.images import EPOCH_S, FakeImage
from tests.fakes.planted import planted_image

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "tests" / "syft.lock"
INSTALL_TIMEOUT_S, SCAN_TIMEOUT_S = 240, 120


class Item(NamedTuple):
    """A package as both tools can name it; `place` is the metadata file or folder."""

    kind: str
    name: str
    version: str
    arch: str
    place: str


@pytest.fixture(scope="session")
def syft_path() -> Path:
    """syft in an environment of its own, made once for each content of the lock."""
    home = ROOT / ".pipeline" / f"syft-{hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12]}"
    if not (home / "bin" / "syft").exists():
        home.parent.mkdir(mode=0o700, exist_ok=True)
        beside = home.with_name(f"{home.name}.{os.getpid()}")
        subprocess.run([sys.executable, "-m", "venv", beside], check=True, timeout=INSTALL_TIMEOUT_S)
        pip = [beside / "bin" / "python", "-m", "pip", "install", "-q", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*pip, "--require-hashes", "-r", LOCK], check=True, timeout=INSTALL_TIMEOUT_S)
        try:
            beside.rename(home)
        except OSError:  # another worker was first
            shutil.rmtree(beside)
    return home / "bin" / "syft"


def write_layout(image: FakeImage, path: Path) -> Path:
    """The image as an OCI layout on disk."""
    blobs = path / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    image.store.write_bytes(image.manifest.raw)
    for digest, data in image.store.blobs.items():
        (blobs / digest.removeprefix("sha256:")).write_bytes(data)
    (path / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
    index = {"schemaVersion": 2, "manifests": [image.manifest.descriptor.to_json()]}
    (path / "index.json").write_text(json.dumps(index))
    return path


def run_syft(syft_path: Path, layout: Path, home: Path) -> list[dict[str, Any]]:
    """syft's artifacts. It gets an empty home and is told to ask nobody for updates."""
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "SYFT_CHECK_FOR_APP_UPDATE": "false"}
    python = [str(syft_path.with_name("python")), str(syft_path)]
    argv = [*python, "scan", f"oci-dir:{layout}", "-q", "-o", "syft-json"]
    done = subprocess.run(argv, env=environment, check=True, capture_output=True, timeout=SCAN_TIMEOUT_S)
    artifacts: list[dict[str, Any]] = json.loads(done.stdout)["artifacts"]
    return artifacts


def theirs(artifact: dict[str, Any]) -> Item:
    """syft's artifact; its Python places are files, ours folders."""
    [place] = {
        each["path"] for each in artifact["locations"] if each.get("annotations", {}).get("evidence") == "primary"
    }
    kind = {"python": "pypi"}.get(artifact["type"], artifact["type"])
    arch = artifact["metadata"].get("architecture", "") if kind == "deb" else ""
    place = re.sub(r"/(METADATA|PKG-INFO)$", "", place)
    return Item(kind, canonicalize_name(artifact["name"]), artifact["version"], arch, place)


def ours(component: SbomComponent) -> Item:
    arch = re.search(r"[?&]arch=([^&]+)", component.purl)
    return Item(
        component.value("ecosystem"),
        canonicalize_name(component.name),
        component.version,
        arch[1] if arch else "",
        component.value("location"),
    )


def test_every_difference_is_explained(syft_path: Path, tmp_path: Path) -> None:
    image = planted_image()
    root = read_root(image.store, image.manifest, image.config, want)
    raw = make_sbom(root, SbomSubject("planted", "1", image.manifest.digest, "Apache-2.0"), EPOCH_S)
    components = [each for each in load_sbom(raw, "ours").components if each.value("ecosystem")]
    left = {ours(each): each for each in components}
    right = {theirs(each): each for each in run_syft(syft_path, write_layout(image, tmp_path / "layout"), tmp_path)}

    only_ours, only_theirs = left.keys() - right.keys(), right.keys() - left.keys()
    # syft 1.18 has no cataloger for conda's records
    conda = {item for item in only_ours if left[item].purl.startswith("pkg:conda/")}
    # nor for the list of what pip carries inside itself
    vendored = {item for item in only_ours if left[item].value("vendored")}
    # it lists what dpkg remembers although nothing of it is on disk: removed, its configuration kept, or never there
    forgotten = {item for item in only_theirs if item.kind == "deb" and item.name in ("removed", "never")}
    # and both kinds of metadata that one installation left (beside each other, or in an editable one's source)
    installed = {item[:4] for item in left if item.place.endswith(".dist-info")}
    twice = {item for item in only_theirs if item.place.endswith(".egg-info") and item[:4] in installed}

    assert only_ours == conda | vendored
    assert only_theirs == forgotten | twice
    assert [len(rule) for rule in (conda, vendored, forgotten, twice)] == [3, 3, 2, 2]
    assert len(left.keys() & right.keys()) == 44
