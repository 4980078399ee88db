"""What we push and what we write to disk, read back by skopeo, which knows nothing of us. Not skipped without it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline.adapters.registry import AnonymousRegistry, CredentialedRegistry, Credentials
from pipeline.derive.release_manifest import ARTIFACT_TYPE, make_artifact
from pipeline.embedded.services import Services
from pipeline.layout import Layout
from pipeline.model.attachment import make_referrer
from pipeline.model.attestation import PREDICATE_TYPES
from pipeline.model.digest import digest_of, hex_of
from pipeline.model.oci import Manifest
from pipeline.model.reference import Reference
from pipeline.stages.journal import push_bundle_blobs

pytestmark = pytest.mark.services
SIGNED_AT = "2026-10-12T08:00:00Z"
DATE = "2026-10-12"


@dataclass(frozen=True)
class Pushed:
    """A tiny image with a referrer of each kind and a release manifest, pushed by our client."""

    place: Reference
    image: Manifest
    referrers: tuple[Manifest, ...]
    release: Manifest

    @property
    def documents(self) -> tuple[Manifest, ...]:
        """Every manifest that was pushed."""
        return (self.image, *self.referrers, self.release)


@pytest.fixture(scope="module")
def pushed(
    services: Services,
    registry_credentials: tuple[str, str],
    tiny_image: tuple[Layout, Manifest],
    tmp_path_factory: pytest.TempPathFactory,
) -> Pushed:
    (layout, image), folder = tiny_image, tmp_path_factory.mktemp("bundles")
    place = Reference(services.registry, f"skopeo-{uuid.uuid4().hex[:12]}/tiny", DATE)
    client = CredentialedRegistry(Credentials(services.registry, *registry_credentials))
    for blob in (image.view.config, *image.view.layers):
        client.push_blob(place, blob, layout, None)
    client.push_manifest(place, image)
    referrers = []
    for kind, predicate_type in PREDICATE_TYPES.items():
        bundle = json.dumps({"bundle": kind}).encode()
        referrers.append(make_referrer(image.descriptor, bundle, predicate_type, SIGNED_AT))
        push_bundle_blobs(place, referrers[-1], bundle, folder, client)
        client.push_referrer(place.with_digest(image.digest), referrers[-1])
    release = make_artifact(b'{"bundle":"release"}', SIGNED_AT)
    push_bundle_blobs(place, release, b'{"bundle":"release"}', folder, client)
    client.push_manifest(place.with_tag(f"release-{DATE}"), release)
    client.close()
    return Pushed(place, image, tuple(referrers), release)


def skopeo(home: Path, *arguments: str) -> bytes:
    """Run it without a credential, a proxy or a configuration of this machine."""
    program = shutil.which("skopeo")
    assert program, "skopeo is needed for this test: install it (apt-get install skopeo)"
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_RUNTIME_DIR": str(home), "TMPDIR": str(home)}
    command = [program, "--insecure-policy", *arguments]
    done = subprocess.run(command, env=environment, cwd=home, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def inspect_raw(home: Path, reference: Reference) -> bytes:
    return skopeo(home, "inspect", "--tls-verify=false", "--raw", f"docker://{reference}")


def copy_out(home: Path, reference: Reference, to: str) -> None:
    skopeo(home, "copy", "--src-tls-verify=false", "--preserve-digests", f"docker://{reference}", to)


def blobs_of(manifest: Manifest) -> set[str]:
    return {blob.digest for blob in (manifest.view.config, *manifest.view.layers)}


def assert_folder_holds(folder: Path, manifest: Manifest) -> None:
    """A `dir:` copy: the manifest byte for byte, and every blob under its digest and nothing else."""
    assert (folder / "manifest.json").read_bytes() == manifest.raw
    found = {path.name for path in folder.iterdir()} - {"manifest.json", "version"}
    assert found == {hex_of(digest) for digest in blobs_of(manifest)}
    assert all(digest_of((folder / name).read_bytes()) == f"sha256:{name}" for name in found)


def assert_layout_holds(folder: Path, manifest: Manifest) -> None:
    """An `oci:` copy, read by our own layout."""
    layout = Layout(folder)
    [entry] = layout.load_index().manifests
    assert (entry.digest, entry.size) == (manifest.digest, len(manifest.raw))
    assert layout.load_manifest(entry).raw == manifest.raw
    for digest in blobs_of(manifest):
        assert digest_of(layout.path(digest).read_bytes()) == digest


def test_manifests_are_served_byte_for_byte_by_tag_and_by_digest(pushed: Pushed, tmp_path: Path) -> None:
    assert inspect_raw(tmp_path, pushed.place) == pushed.image.raw
    assert inspect_raw(tmp_path, pushed.place.with_tag(f"release-{DATE}")) == pushed.release.raw
    for manifest in pushed.documents:
        assert inspect_raw(tmp_path, pushed.place.with_digest(manifest.digest)) == manifest.raw


def test_the_referrers_tag_lists_every_referrer(pushed: Pushed, tmp_path: Path) -> None:
    tag = pushed.place.with_tag(pushed.image.digest.replace(":", "-"))
    index = json.loads(inspect_raw(tmp_path, tag))
    listed = {entry["digest"]: (entry["artifactType"], entry["annotations"]) for entry in index["manifests"]}
    wanted = {each.digest: (each.view.artifact_type, each.view.annotations) for each in pushed.referrers}
    assert listed == wanted


def test_every_artifact_is_copied_out_of_the_registry_whole(pushed: Pushed, tmp_path: Path) -> None:
    for number, manifest in enumerate(pushed.documents):
        pinned = pushed.place.with_digest(manifest.digest)
        copy_out(tmp_path, pinned, f"dir:{tmp_path}/dir-{number}")
        assert_folder_holds(tmp_path / f"dir-{number}", manifest)
        copy_out(tmp_path, pinned, f"oci:{tmp_path}/oci-{number}")
        assert_layout_holds(tmp_path / f"oci-{number}", manifest)


def test_a_reviewer_gets_the_release_bundle_as_a_file(pushed: Pushed, tmp_path: Path) -> None:
    copy_out(tmp_path, pushed.place.with_tag(f"release-{DATE}"), f"dir:{tmp_path}/release")
    document = json.loads((tmp_path / "release" / "manifest.json").read_bytes())
    assert document["artifactType"] == ARTIFACT_TYPE
    [layer] = document["layers"]
    assert (tmp_path / "release" / hex_of(layer["digest"])).read_bytes() == b'{"bundle":"release"}'


def test_our_layout_is_read(tiny_image: tuple[Layout, Manifest], tmp_path: Path) -> None:
    layout, image = tiny_image
    assert skopeo(tmp_path, "inspect", "--raw", f"oci:{layout.folder}") == image.raw
    skopeo(tmp_path, "copy", "--preserve-digests", f"oci:{layout.folder}", f"dir:{tmp_path}/copied")
    assert_folder_holds(tmp_path / "copied", image)


def test_a_changed_blob_in_our_layout_is_noticed(tiny_image: tuple[Layout, Manifest], tmp_path: Path) -> None:
    layout, image = tiny_image
    changed = Path(shutil.copytree(layout.folder, tmp_path / "changed"))
    blob = changed / "blobs" / "sha256" / hex_of(image.view.layers[-1].digest)
    data = blob.read_bytes()
    blob.unlink()
    blob.write_bytes(bytes([*data[:20], data[20] ^ 1, *data[21:]]))
    with pytest.raises(AssertionError, match=r"[Dd]igest"):
        skopeo(tmp_path, "copy", "--preserve-digests", f"oci:{changed}", f"dir:{tmp_path}/copied")


def test_the_anonymous_client_reads_what_skopeo_reads(pushed: Pushed, tmp_path: Path) -> None:
    client = AnonymousRegistry()
    for manifest in pushed.documents:
        pinned = pushed.place.with_digest(manifest.digest)
        assert client.fetch_manifest(pinned).raw == inspect_raw(tmp_path, pinned)
    client.close()
