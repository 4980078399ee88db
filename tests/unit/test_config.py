"""Bad input is refused before any work, with file, line, what is wrong and the nearest valid name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pipeline.config import Release, load_release
from pipeline.errors import ConfigError
from pipeline.strict_yaml import load_document

ROOT = Path(__file__).parents[2]


@pytest.fixture
def release_path(tmp_path: Path) -> Path:
    """A copy of the declarative files, to be damaged."""
    for name in ("images", "policies"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "release.yaml", tmp_path)
    return tmp_path / "release.yaml"


def refused(path: Path) -> str:
    """The error's whole text."""
    with pytest.raises(ConfigError) as caught:
        load_release(path)
    return str(caught.value)


def edit(path: Path, old: str, new: str) -> int:
    """Replace the one occurrence of old; returns its line."""
    text = path.read_text()
    assert text.count(old) >= 1, old
    path.write_text(text.replace(old, new, 1))
    return text[: text.index(old)].count("\n") + 1


def test_the_release_in_the_repository_is_accepted_in_base_order() -> None:
    release = load_release(ROOT / "release.yaml")

    assert isinstance(release, Release)
    order = [image.id for image in release.images]
    assert order.index("format-code-task-000666") < order.index("software")
    assert release.epoch_s == 1791763200


def test_misspelt_key_names_line_and_nearest(release_path: Path) -> None:
    line = edit(release_path, "default_target:", "default_targt:")
    message = refused(release_path)
    assert f"release.yaml:{line}" in message
    assert "unknown key 'default_targt'" in message
    assert "did you mean 'default_target'?" in message


def test_misspelt_nested_key_names_its_own_valid_keys(release_path: Path) -> None:
    line = edit(release_path, "      reset_wall_s:", "      reset_wal_s:")
    message = refused(release_path)
    assert f"release.yaml:{line}" in message
    assert "did you mean 'reset_wall_s'?" in message


def test_duplicate_key_names_both_lines(release_path: Path) -> None:
    first = edit(release_path, "default_target: local", "default_target: local\ndefault_target: ghcr")
    message = refused(release_path)
    assert f"release.yaml:{first + 1}" in message
    assert f"duplicate key 'default_target'; first on line {first}" in message


def test_tag_where_a_digest_belongs(release_path: Path) -> None:
    text = release_path.read_text()
    start = text.index("@sha256:")
    release_path.write_text(text[:start] + ":latest\n")
    message = refused(release_path)
    assert "a tag where a digest belongs" in message
    assert "release.yaml:" in message


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('release: "2026-10-12"', "release: 2026-13-12", "it must match"),
        ("version: 1", "version: yes", "'yes' is not 1"),
        ("reset_wall_s: 120", "reset_wall_s: 1.5e2", "valid integer"),
        ("rekor: 1", "rekor: 3", "3 is not 1 or 2"),
        ("kind: embedded", "kind: remote", "an embedded target listens on 127.0.0.1"),
        ("  - id: software", "  - id: format-code-task-000666", "named twice"),
        ("base: format-code-task-000666", "base: format-code-task-000667", "did you mean 'format-code-task-000666'?"),
        ("default_target: local", "default_target: locla", "did you mean 'local'?"),
        ("definition: images/software", "definition: images/softwar", "missing file: images/softwar/image.yaml"),
        ("definition: images/software", "definition: ../software", "it must match"),
        ("  - base-pinned", "  - base-pined", "did you mean 'base-pinned.yaml'?"),
        ("default_target: local", "default_target: &x local", "anchors and aliases are not accepted"),
        ("default_target: local", "default_target: !!str local", "tags are not accepted"),
        ("default_target: local", "default_target: [local", "not YAML"),
    ],
)
def test_refused_with_reason(release_path: Path, old: str, new: str, expected: str) -> None:
    edit(release_path, old, new)
    assert expected in refused(release_path)


def test_an_image_cannot_derive_from_itself(release_path: Path) -> None:
    edit(release_path, "base: format-code-task-000666", "base: software")
    assert "software -> software" in refused(release_path)


def test_missing_source_of_a_layer_is_named_at_its_line(release_path: Path) -> None:
    image = release_path.parent / "images" / "software" / "image.yaml"
    line = edit(image, "source: workflow", "source: workflw")
    message = refused(release_path)
    assert f"images/software/image.yaml:{line}" in message
    assert "did you mean 'workflow'?" in message


def test_link_out_of_the_repository_is_refused(release_path: Path) -> None:
    folder = release_path.parent / "images" / "software" / "workflow"
    shutil.rmtree(folder)
    folder.symlink_to("/etc")
    assert "leads out of the repository" in refused(release_path)


def test_yaml_that_means_something_else_elsewhere_stays_text() -> None:
    document = load_document(b"a: no\nb: 1.10\nc: 2026-10-12\nd: 0o17\ne: ~\nf: true\ng: -3\n", "x.yaml")
    assert document.value == {
        "a": "no",
        "b": "1.10",
        "c": "2026-10-12",
        "d": "0o17",
        "e": "~",
        "f": True,
        "g": -3,
    }


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"\xff\xfe", "not UTF-8"),
        (b"", "empty"),
        (b"a: " + b"[" * 40 + b"]" * 40, "nested deeper"),
        (b"? [a]\n: b\n", "a key must be text"),
        (b"#" * (1 << 20) + b"\na: b", "the limit is"),
    ],
)
def test_absurd_documents_are_refused(raw: bytes, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        load_document(raw, "x.yaml")
