"""Reading what the stage before left: complete, undamaged, fresh, and of this release, target and image."""

from __future__ import annotations

import hashlib
from pathlib import Path

from pipeline.errors import IntegrityError, StageError
from pipeline.files import read_bytes_limited
from pipeline.layout import Layout
from pipeline.model.digest import digest_of
from pipeline.model.finding import CheckReport
from pipeline.model.oci import ImageConfig, Manifest
from pipeline.model.stages import BuiltImage, OutputFile, PublishedImage
from pipeline.paths import Paths

RECORD_NAME = "record.json"
MAX_RECORD_BYTES = 4 << 20
MAX_OUTPUT_BYTES = 256 << 20


def load_built(paths: Paths, image: str) -> tuple[BuiltImage, Layout]:
    """The built image's record and layout, every digest in it recomputed; StageError or IntegrityError."""
    folder = paths.built(image)
    record = BuiltImage.load(_read_record(folder, "build"), str(folder / RECORD_NAME))
    _check_owner(record, paths, image, folder)
    for output in record.outputs:
        read_output(folder, output)
    layout = Layout(folder / "layout")
    for digest in (record.manifest_digest, record.config_digest, *(layer.digest for layer in record.layers)):
        _check_blob(layout, digest)
    return record, layout


def load_published(paths: Paths, image: str) -> PublishedImage:
    """The published image's record; it must be of the built record that lies here now."""
    folder = paths.published(image)
    record = PublishedImage.load(_read_record(folder, "publish"), str(folder / RECORD_NAME))
    _check_owner(record, paths, image, folder)
    built = paths.built(image) / RECORD_NAME
    if built.is_file() and digest_of(read_bytes_limited(built, MAX_RECORD_BYTES)) != record.built_record:
        raise StageError(
            "what was published is not what was built last", where=str(folder / RECORD_NAME), remedy="run publish again"
        )
    return record


def load_checks(paths: Paths, built: BuiltImage) -> CheckReport:
    """The report of the run before publication."""
    raw = read_output(paths.built(built.image), built.output("checks.json"))
    return CheckReport.load(raw, "checks.json")


def has_record(folder: Path) -> bool:
    """Whether a stage finished here."""
    return (folder / RECORD_NAME).is_file()


def read_output(folder: Path, output: OutputFile) -> bytes:
    """A file of a record; IntegrityError when it is not the bytes that the record names."""
    path = folder / output.path
    if not path.is_file():
        raise StageError("an output of the build is missing", where=str(path), remedy="run build again")
    data = read_bytes_limited(path, MAX_OUTPUT_BYTES)
    if digest_of(data) != output.digest:
        raise IntegrityError("an output of the build was changed", where=str(path), remedy="run build again")
    return data


def load_manifest(layout: Layout, digest: str, media_type: str) -> Manifest:
    """A manifest out of a layout that was checked before."""
    with layout.open(digest) as blob:
        return Manifest(blob.read(), media_type)


def load_config(layout: Layout, digest: str) -> ImageConfig:
    """A config out of a layout that was checked before."""
    with layout.open(digest) as blob:
        return ImageConfig(blob.read())


def _read_record(folder: Path, verb: str) -> bytes:
    path = folder / RECORD_NAME
    if not path.is_file():
        raise StageError(f"no record of {verb}", where=str(path), remedy=f"run: nox -s {verb}")
    return read_bytes_limited(path, MAX_RECORD_BYTES)


def _check_owner(record: BuiltImage | PublishedImage, paths: Paths, image: str, folder: Path) -> None:
    for name, found, wanted in (
        ("release", record.release, paths.release),
        ("target", record.target, paths.target),
        ("image", record.image, image),
    ):
        if found != wanted:
            raise StageError(
                f"a record of another {name}: {found!r} instead of {wanted!r}",
                where=str(folder / RECORD_NAME),
                remedy="remove the folder and run the stage again",
            )


def _check_blob(layout: Layout, digest: str) -> None:
    with layout.open(digest) as blob:
        found = "sha256:" + hashlib.file_digest(blob, "sha256").hexdigest()  # type: ignore[arg-type]
    if found != digest:
        raise IntegrityError(
            f"the stored blob is {found}", where=f"{layout.folder}, {digest}", remedy="remove it and run build again"
        )
