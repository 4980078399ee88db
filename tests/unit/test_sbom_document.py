"""An SBOM says everything that is in an image and nothing else, the same bytes each time, valid against the schema."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache

import pytest

from pipeline.derive.layer import Entry
from pipeline.errors import HostileInputError, IntegrityError
from pipeline.model.digest import digest_of
from pipeline.sbom.document import BaseImage, RepositoryUnderRepair, SbomSubject, make_sbom, want
from pipeline.sbom.rootfs import read_root
from pipeline.sbom.view import Sbom, SbomComponent, check_references, check_schema, load_sbom
from tests.fakes.images import EPOCH_S, FakeImage, entry, make_image
from tests.fakes.planted import COPYRIGHT, EXPECTED, LOCAL, OS_RELEASE, STATUS, deb, dist, egg, planted_image

BASE = "sha256:" + "1" * 64
COMMIT = "a" * 40


def sbom_bytes(image: FakeImage) -> bytes:
    subject = SbomSubject(
        image="planted",
        version="2026-10-12",
        manifest_digest=image.manifest.digest,
        licences="Apache-2.0",
        bases=(BaseImage("ghcr.io/example/task", BASE),),
        repository=RepositoryUnderRepair(
            "PYroMat", "2.1.0", COMMIT, "/workspace/repo", "https://example.org/pyromat.git", "GPL-3.0-only", True
        ),
    )
    return make_sbom(read_root(image.store, image.manifest, image.config, want), subject, EPOCH_S)


@cache
def planted() -> Sbom:
    return load_sbom(sbom_bytes(planted_image()), "planted")


def sbom_of(*layers: Iterable[Entry]) -> Sbom:
    return load_sbom(sbom_bytes(make_image(*layers)), "test")


def one(name: str, place: str = "") -> SbomComponent:
    [found] = [each for each in planted().components if each.name == name and place in each.value("location")]
    return found


def needs(component: SbomComponent) -> set[str]:
    [edge] = [edge for edge in planted().dependencies if edge.ref == component.ref]
    return set(edge.needs)


def test_fifty_planted_packages_are_found_and_nothing_else() -> None:
    found = [(each.purl, each.value("location")) for each in planted().components if each.value("ecosystem")]
    assert len(EXPECTED) == 50
    assert sorted(found) == sorted(EXPECTED)


def test_valid_against_the_schema_and_closed_in_itself() -> None:
    raw = sbom_bytes(planted_image())
    assert check_schema(raw) == []
    assert check_references(load_sbom(raw, "x")) == []


def test_the_same_bytes_each_time_and_other_bytes_for_another_manifest() -> None:
    image = planted_image()
    assert sbom_bytes(image) == sbom_bytes(planted_image())
    other = sbom_of([entry("etc/hostname", "a")])
    assert other.serial_number != planted().serial_number
    assert planted().metadata.timestamp == "2026-10-12T00:00:00+00:00"
    assert "sha256:" + planted().subject_sha256 == image.manifest.digest


def test_which_layer_brought_each() -> None:
    layers = [layer.digest for layer in planted_image().manifest.view.layers]
    places = {"bash": 0, "perl": 1, "six-move": 1, "editable-tool": 2}
    assert {name: one(name).value("layer") for name in places} == {name: layers[at] for name, at in places.items()}
    assert one("upgraded", LOCAL).value("layer") == layers[1]


def test_licences() -> None:
    assert one("bash").licences == ("(GPL-2.0-or-later OR LicenseRef-Artistic) AND GPL-2.0-or-later AND MIT",)
    assert one("git").licences == one("bash").licences  # its doc folder is a link
    assert one("numpy", LOCAL).licences == ("BSD-3-Clause AND (MIT OR Zlib)",)
    assert one("scipy").licences == ("BSD License",)
    assert one("perl").licences == ()


def test_source_package_and_evidence() -> None:
    assert one("git").value("source-package") == "git@1:2.39.5-0+deb12u1"
    assert {each.value("source-package") for each in planted().components if each.name == "libc6"} == {"glibc@2.36-9"}
    evidence = [each.value for each in one("bash").properties if each.name == "pipeline:evidence"]
    assert sorted(evidence) == sorted(
        [
            f"{digest_of(COPYRIGHT.encode())} /usr/share/doc/bash/copyright",
            f"{digest_of(b'd41d8cd98f00b204e9800998ecf8427e  bin/bash' + bytes([10]))} /var/lib/dpkg/info/bash.md5sums",
        ]
    )


def test_dependency_graph() -> None:
    libc = "pkg:deb/debian/libc6@2.36-9?arch=amd64&distro=debian-12#/var/lib/dpkg/status"
    assert needs(one("bash")) == {libc, one("base-files").ref, one("debconf").ref}
    assert needs(one("git")) == {libc, one("perl").ref}  # through Provides
    assert needs(one("numpy", LOCAL)) == {one("upgraded", LOCAL).ref, one("six-move").ref}
    assert needs(one("upgraded", "venv")) == {one("numpy", "venv").ref}
    assert needs(one("blinker")) == {one("argcomplete").ref}  # requires.txt, markers and extras left out
    assert needs(one("openenv")) == {one("pydantic").ref}  # two numpy elsewhere: nothing says which
    assert needs(one("pandas", "conda-meta")) == {one("openssl", "conda-meta").ref}


def test_system_repository_and_bases() -> None:
    by_ref = {each.ref: each for each in planted().components}
    assert (by_ref["operating-system"].name, by_ref["operating-system"].version) == ("debian", "12")
    repository = by_ref["repository"]
    assert repository.purl.startswith("pkg:pypi/pyromat@2.1.0?vcs_url=")
    assert COMMIT in repository.purl
    assert repository.value("base-commit") == COMMIT
    [base] = [each for each in planted().components if each.version == BASE]
    assert base.hashes[0].content == "1" * 64


def test_completeness_is_stated_for_each_ecosystem() -> None:
    stated = {ref: each.aggregate for each in planted().compositions for ref in each.assemblies}
    assert stated[one("bash").ref] == stated[one("scipy").ref] == "complete"
    assert stated["repository"] == "unknown"
    assert set(stated) == {each.ref for each in planted().components}


def test_metadata_without_a_name_makes_an_ecosystem_incomplete() -> None:
    odd = entry("x/odd-1.0.dist-info/METADATA", "Metadata-Version: 2.1\n")
    raw = sbom_bytes(make_image([*dist(LOCAL, "fine", "1.0"), odd, entry("y/gone-1.dist-info/RECORD")]))
    assert {each.aggregate for each in load_sbom(raw, "x").compositions} == {"incomplete", "unknown"}
    values = [each["value"] for each in json.loads(raw)["metadata"]["properties"]]
    assert values == ["x/odd-1.0.dist-info/METADATA", "y/gone-1.dist-info/RECORD"]
    assert check_schema(raw) == []


@pytest.mark.parametrize(
    "files",
    [
        [entry("etc/os-release", OS_RELEASE)],
        [entry("etc/debian_version", "12.5\n")],
        [entry("var/lib/dpkg/info/bash.list", "/bin/bash\n")],
        [entry("etc/os-release", OS_RELEASE), entry("var/lib/dpkg/status", "")],
        [entry("usr/lib/os-release", "ID=mint\nID_LIKE='ubuntu debian'\n")],
    ],
)
def test_a_debian_root_without_a_package_database_is_an_error(files: list[Entry]) -> None:
    with pytest.raises(IntegrityError, match="without its package database"):
        sbom_of(files)


def test_a_database_that_a_later_layer_removed_is_an_error() -> None:
    with pytest.raises(IntegrityError, match="without its package database"):
        sbom_of(
            [entry("etc/os-release", OS_RELEASE), entry("var/lib/dpkg/status", STATUS)],
            [entry("var/lib/dpkg/.wh.status")],
        )


def test_a_database_of_another_kind_is_an_error() -> None:
    with pytest.raises(IntegrityError, match="no reader here knows"):
        sbom_of([entry("lib/apk/db/installed", "P:musl\n")])


def test_a_root_without_any_package_is_an_sbom_without_packages() -> None:
    assert [each.type for each in sbom_of([entry("etc/hostname", "a")]).components] == ["application", "container"]


def test_credentials_in_a_direct_url_never_reach_the_sbom() -> None:
    url = json.dumps(
        {
            "url": "https://user:hunter2@example.org/x.whl?token=hunter2",
            "archive_info": {"hashes": {"sha256": "b" * 64}},
        }
    )
    files = [*dist(LOCAL, "x", "1"), entry(f"{LOCAL}/x-1.dist-info/direct_url.json", url)]
    raw = sbom_bytes(make_image(files))
    assert b"hunter2" not in raw
    [component] = load_sbom(raw, "x").packages("pypi")[1:]
    assert component.value("direct-url") == "https://example.org/x.whl"
    assert component.hashes[0].content == "b" * 64


@pytest.mark.parametrize(
    "text",
    [b"{", b"[]", b'{"url": 5, "dir_info": []}', b'{"dir_info": {"editable": true}}', b"\xff", b"[" * 100_000, b"null"],
)
def test_a_hostile_direct_url_is_not_believed(text: bytes) -> None:
    files = [*dist(LOCAL, "x", "1"), entry(f"{LOCAL}/x-1.dist-info/direct_url.json", text)]
    assert [each.name for each in sbom_of(files).packages("pypi")][-1] == "x"


def test_names_that_are_not_utf8_or_need_quoting() -> None:
    raw = sbom_bytes(make_image(dist("opt/a b#%ü\udcff", "x", "1"), [entry("etc/os-release", "ID=\xff\nNAME='\n")]))
    assert check_schema(raw) == []
    assert load_sbom(raw, "x").packages("pypi")[-1].value("location") == r"/opt/a b#%ü\xff/x-1.dist-info"


def test_broken_paragraphs_are_told() -> None:
    status = deb("fine", "1.0") + "\n" + deb("NOT A NAME", "1.0") + "\n" + deb("fine2", "")
    raw = sbom_bytes(make_image([entry("var/lib/dpkg/status", status)]))
    assert [each.name for each in load_sbom(raw, "x").packages("deb")] == ["fine"]
    assert len(json.loads(raw)["metadata"]["properties"]) == 2


def test_metadata_that_is_too_long_is_refused() -> None:
    with pytest.raises(HostileInputError, match="Python metadata"):
        sbom_of([entry("x.egg-info", "Name: x\nVersion: 1\n" + "x" * (4 << 20))])


def test_an_editable_install_and_its_source_are_one() -> None:
    assert [each.value("location") for each in planted().components if each.name == "editable-tool"] == [
        f"/{LOCAL}/editable_tool-0.1.0.dist-info"
    ]
    assert one("editable-tool").value("editable") == "true"


def test_the_repository_is_one_component_whatever_metadata_it_carries() -> None:
    own = egg("workspace/repo/src/PYroMat.egg-info/PKG-INFO", "PYroMat", "2.1.0")
    twin = egg(f"{LOCAL}/pyromat.egg-info/PKG-INFO", "PYroMat", "2.2.0")
    vendored = egg("workspace/repo/vendor/other.egg-info/PKG-INFO", "other", "1")
    found = sbom_of([own, twin, vendored]).packages("pypi")
    assert sorted((each.name, each.version) for each in found) == [
        ("PYroMat", "2.1.0"),
        ("PYroMat", "2.2.0"),
        ("other", "1"),
    ]
    assert [each.ref for each in found if each.version == "2.1.0"] == ["repository"]


def test_checks_of_a_damaged_document() -> None:
    document = json.loads(sbom_bytes(planted_image()))
    document["components"][0]["type"] = "wish"
    document["surprise"] = 1
    found = [each.what for each in check_schema(json.dumps(document).encode())]
    assert any("components/0/type" in what for what in found)
    assert any("surprise" in what for what in found)
    assert check_schema(b"{")[0].what.startswith("not JSON")
    assert check_schema(b"[" * 200_000)[0].what.startswith("not JSON")
    document["dependencies"][0]["dependsOn"] = ["nowhere"]
    document["components"][1]["bom-ref"] = document["components"][2]["bom-ref"]
    what = [each.what for each in check_references(load_sbom(json.dumps(document).encode(), "x"))]
    assert any("two components" in each for each in what)
    assert any("'nowhere' is referred to" in each for each in what)
    with pytest.raises(HostileInputError):
        load_sbom(b'{"components": 5}', "x")
    with pytest.raises(HostileInputError):
        load_sbom(b" " * (33 << 20), "x")
