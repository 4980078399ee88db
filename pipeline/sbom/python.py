"""Python distributions from their metadata, wherever it is: dist-info, egg-info (folder or file), eggs, vendor.txt.

Formats: https://packaging.python.org/en/latest/specifications/recording-installed-packages/ and core-metadata. Nothing
is imported. One installation that left two kinds of metadata (an editable one and its source's egg-info; a dist-info
and an egg-info side by side) is one package.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote, urlsplit

from packageurl import PackageURL
from packaging.metadata import RawMetadata, parse_email
from packaging.utils import canonicalize_name

from pipeline.errors import HostileInputError
from pipeline.sbom.licences import python_licence
from pipeline.sbom.markers import required_names, requires_txt_names
from pipeline.sbom.package import Inventory, Package, printable
from pipeline.sbom.rootfs import FoundFile, RootView, Want

_METADATA = re.compile(
    r"(?P<place>.*/)?(?P<folder>[^/]+\.dist-info/METADATA|[^/]+\.egg-info/PKG-INFO|[^/]+\.egg/EGG-INFO/PKG-INFO"
    r"|[^/]+\.egg-info)"
)
_BESIDE = re.compile(r".*\.dist-info/(?:direct_url\.json)|.*(?:\.egg-info|EGG-INFO)/requires\.txt")
_RECORD = re.compile(r".*\.dist-info/RECORD")
_VENDOR = re.compile(r"(?:.*/)?_vendor/vendor\.txt")
_PINNED = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9][A-Za-z0-9.!+_-]*)\s*(?:[;#].*)?")
_VERSIONED = re.compile(r"python(\d+\.\d+)")
_MAX_BYTES = 4 << 20
_DEFAULT_PYTHON = "3.11"


def want_python(path: str) -> Want | None:
    """Which files the reader needs, and how."""
    if _METADATA.fullmatch(path) or _BESIDE.fullmatch(path) or _VENDOR.fullmatch(path):
        return "content"
    return "digest" if _RECORD.fullmatch(path) else None


def load_python(root: RootView) -> Inventory:
    """Every distribution, and the metadata folders that say no name or version."""
    found: list[Package] = []
    unreadable = set(_folders_without_metadata(root))
    for path, file in sorted(root.files.items()):
        if len(file.data) > _MAX_BYTES and want_python(path) == "content":
            raise HostileInputError(f"Python metadata of {len(file.data)} bytes", where=printable(path))
        if _VENDOR.fullmatch(path):
            found += _vendored(file)
        elif _METADATA.fullmatch(path):
            package = _distribution(root, file)
            found += [package] if package else []
            unreadable |= set() if package else {printable(path)}
    return Inventory("pypi", tuple(sorted(_merged(found), key=lambda package: package.ref)), tuple(sorted(unreadable)))


def _folders_without_metadata(root: RootView) -> Iterator[str]:
    for path in root.files:
        if _RECORD.fullmatch(path) and path.removesuffix("RECORD") + "METADATA" not in root.files:
            yield printable(path)


def _distribution(root: RootView, file: FoundFile) -> Package | None:
    raw, _ = parse_email(file.data)
    name, version = raw.get("name", ""), raw.get("version", "")
    if not name or not version or not canonicalize_name(name):
        return None
    folder = file.path.rpartition("/")[0] if file.path.endswith(("METADATA", "PKG-INFO")) else file.path
    record = root.files.get(f"{folder}/RECORD")
    source = _direct_url(root.files.get(f"{folder}/direct_url.json"))
    return Package(
        ecosystem="pypi",
        name=name,
        version=version,
        purl=PackageURL("pypi", None, canonicalize_name(name), version),
        location=printable(folder),
        layer=file.layer,
        licence=python_licence(raw.get("license_expression", ""), raw.get("license", ""), raw.get("classifiers", [])),
        evidence=tuple((printable(each.path), each.sha256) for each in (file, record) if each),
        requires=tuple((name,) for name in _requires(root, raw, folder)),
        properties=tuple(source.items()),
        archive_sha256=source.pop("archive-sha256", ""),
        description=raw.get("summary", "").strip().partition("\n")[0][:200],
    )


def _requires(root: RootView, raw: RawMetadata, folder: str) -> tuple[str, ...]:
    versioned = _VERSIONED.search(folder)
    python = versioned[1] if versioned else _DEFAULT_PYTHON
    listed = root.files.get(f"{folder}/requires.txt")
    if listed and not raw.get("requires_dist"):
        return requires_txt_names(listed.data.decode("utf-8", "replace"), python)
    return required_names(raw.get("requires_dist", []), python)


def _direct_url(file: FoundFile | None) -> dict[str, str]:
    """PEP 610: where an installation came from. Credentials in a URL never leave this function."""
    try:
        document = json.loads(file.data) if file else {}
        archive, folder = document.get("archive_info") or {}, document.get("dir_info") or {}
        parts = urlsplit(str(document.get("url", "")))
        values = {
            "archive-sha256": str((archive.get("hashes") or {}).get("sha256", "")),
            "direct-url": parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl(),
            "editable": "true" if folder.get("editable") is True else "",
            "vcs-commit": str((document.get("vcs_info") or {}).get("commit_id", "")),
        }
    except (ValueError, AttributeError, RecursionError):
        return {}
    if not re.fullmatch(r"[0-9a-f]{64}", values["archive-sha256"]):
        values["archive-sha256"] = ""
    return {key: value for key, value in values.items() if value}


def _vendored(file: FoundFile) -> Iterator[Package]:
    """pip's own list of what it carries: exact pins, one a line, no metadata folders."""
    for line in file.data.decode("utf-8", "replace").splitlines():
        if pinned := _PINNED.fullmatch(line):
            name, version = pinned.groups()
            yield Package(
                ecosystem="pypi",
                name=name,
                version=version,
                purl=PackageURL("pypi", None, canonicalize_name(name), version),
                location=printable(file.path),
                layer=file.layer,
                evidence=((printable(file.path), file.sha256),),
                properties=(("vendored", "true"),),
            )


def _merged(packages: Iterable[Package]) -> list[Package]:
    """Without egg-info that another metadata folder of the same installation covers."""
    listed = list(packages)
    places = {(p.purl.to_string(), place) for p in listed if ".dist-info" in p.location for place in _places(p)}
    return [p for p in listed if ".dist-info" in p.location or (p.purl.to_string(), _parent(p)) not in places]


def _places(package: Package) -> Iterator[str]:
    """Folders that hold an installation: the one of its metadata; of an editable one its source, plain or under src."""
    yield _parent(package)
    values = dict(package.properties)
    if "editable" in values and "direct-url" in values:
        source = unquote(urlsplit(values["direct-url"]).path).strip("/")
        yield from (source, f"{source}/src")


def _parent(package: Package) -> str:
    return package.location.rpartition("/")[0]
