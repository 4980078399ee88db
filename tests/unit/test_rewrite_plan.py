"""Plans, history entries, deltas, and the scan stage with its cache."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.derive.git_deltas import make_delta
from pipeline.derive.history_entries import REPLACEMENT, clean_history, names_a_secret
from pipeline.derive.strip import plan_strip
from pipeline.errors import IntegrityError
from pipeline.layout import Layout
from pipeline.model.oci import OCI_LAYER_GZIP, OCI_MANIFEST, HistoryEntry, Manifest
from pipeline.model.record import canonical_json
from pipeline.scan.pack import apply_delta
from pipeline.scan.record import LayerScan
from pipeline.scan.rules import Rules
from pipeline.stages.scan import render, scan_store
from tests.fakes.leaks import REPO, Image, Item, World, make_image, tree_items

SECRETS = [
    "RUN curl -H token=abcd1234 http://example.test",
    "ARG NPM_TOKEN=npm_0123456789",
    "ENV PASSWORD: hunter22",
    "git clone https://user:pass@example.test/x.git",
    "ghp_" + "a" * 36,
    "AKIA" + "A" * 16,
    "-----BEGIN OPENSSH PRIVATE KEY",
]
ORDINARY = [
    "RUN apt-get install tokenizers",
    "COPY secrets.md /doc",
    "ENV PATH=/usr/bin",
    'CMD ["passwd"]',
    "WORKDIR /srv",
]


@pytest.mark.parametrize("text", SECRETS)
def test_a_secret_is_recognised(text: str) -> None:
    assert names_a_secret(text)


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_build_steps_are_not_secrets(text: str) -> None:
    assert not names_a_secret(text)


def test_history_is_cleaned_in_place() -> None:
    future = "c" * 40
    texts = ["CMD x", SECRETS[0], "COPY solver.patch /", f"RUN git fetch origin {future[:12]}"]
    entries = [HistoryEntry(created="2026-01-01T00:00:00Z", created_by=text, empty_layer=True) for text in texts]
    clean = clean_history(entries, ["solver.patch"], [future])
    assert clean.cleaned == (1, 2, 3)
    assert [entry.created_by for entry in clean.entries] == ["CMD x", REPLACEMENT, REPLACEMENT, REPLACEMENT]
    assert {(entry.created, entry.empty_layer) for entry in clean.entries} == {("2026-01-01T00:00:00Z", True)}


def test_the_config_of_an_image_is_judged(tmp_path: Path) -> None:
    world = World(tmp_path)
    rules = world.rules(future_objects=frozenset({world.head}))
    blobs = make_image(world.with_items()).blobs
    scan, layers = Image(blobs, ("CMD x", f"RUN git fetch {world.head}")).scan(rules)
    assert [(leak.layer, leak.path, leak.objects) for leak in scan.leaks] == [("", "config/history/1", (world.head,))]
    assert plan_strip(scan, layers, {}).history == (1,)


def test_a_plan_leaves_clean_layers_and_untracked_files(tmp_path: Path) -> None:
    world = World(tmp_path)
    built = Item(f"{REPO}/build.so", b"made by a build step")
    image = make_image([world.root_items, [*tree_items(world.source, REPO, 2000), built], [Item("x", b"1")]])
    scan, layers = image.scan(world.rules())
    plan = plan_strip(scan, layers, {REPO: frozenset({"core.py", "README"})})
    assert list(plan.layers) == [layers[1].layer]
    dropped = plan.layers[layers[1].layer]
    assert {f"{REPO}/.git".encode(), f"{REPO}/core.py".encode(), f"{REPO}/lookup.py".encode()} <= dropped
    assert f"{REPO}/build.so".encode() not in dropped
    assert not plan.is_empty


def test_a_clean_image_has_an_empty_plan(tmp_path: Path) -> None:
    world = World(tmp_path)
    scan, layers = make_image(world.with_items()).scan(world.rules())
    assert plan_strip(scan, layers, {}).is_empty


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([b"a line of text\n", b"another one\n", b"x\n", b"\n", bytes(range(200))]), max_size=40),
    st.randoms(),
)
def test_a_delta_gives_its_target(lines: list[bytes], random_: random.Random) -> None:
    target = b"".join(random_.sample(lines, len(lines))) + random_.randbytes(random_.randrange(300))
    base = b"".join(lines)
    assert apply_delta(base, make_delta(base, target, "blob", "sha1"), 1 << 20) == target


def test_a_small_change_of_a_large_text_is_a_small_delta() -> None:
    base = b"".join(b"line number %d of a text\n" % number for number in range(5000))
    target = base.replace(b"number 2500", b"number changed")
    delta = make_delta(base, target, "blob", "sha1")
    assert apply_delta(base, delta, 1 << 20) == target
    assert len(delta) < 100


class Cache:
    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], bytes] = {}
        self.hits = 0

    def get(self, layer: str, rules: str) -> bytes | None:
        self.hits += (layer, rules) in self.kept
        return self.kept.get((layer, rules))

    def put(self, layer: str, rules: str, scan: bytes) -> None:
        self.kept[layer, rules] = scan


def stored(image: Image, folder: Path) -> tuple[Layout, Manifest]:
    layout = Layout(folder)
    config = layout.write_bytes(image.config.raw)
    layers = [
        {"mediaType": OCI_LAYER_GZIP, "digest": layout.write_bytes(blob), "size": len(blob)} for blob in image.blobs
    ]
    described = {
        "mediaType": "application/vnd.oci.image.config.v1+json",
        "digest": config,
        "size": len(image.config.raw),
    }
    raw = canonical_json({"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": described, "layers": layers})
    return layout, Manifest(raw, OCI_MANIFEST)


def test_a_layout_is_scanned_once_for_any_base_and_rendered(tmp_path: Path) -> None:
    world = World(tmp_path)
    image = make_image([world.root_items, tree_items(world.source, REPO, 2000)])
    layout, manifest = stored(image, tmp_path / "layout")
    cache = Cache()
    scan, layers = scan_store(layout, manifest, world.rules(), cache)
    assert cache.hits == 0
    again, _ = scan_store(layout, manifest, world.rules(), cache)
    assert (again, cache.hits) == (scan, 2)
    assert again.to_bytes() == scan.to_bytes()
    assert LayerScan.load(layers[1].to_bytes(), "test") == layers[1]
    later, _ = scan_store(layout, manifest, Rules(base_commits=(world.head,)), cache)
    assert (later.leaks, cache.hits) == ((), 4)
    text = render(scan)
    assert f"base commits: {world.base}" in text
    assert "reachable: future: workspace/repo/lookup.py" in text
    assert len(scan.leaks) > 0
    assert scan.of("buried") == ()


def test_a_layer_that_is_not_what_the_manifest_says_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    layout, manifest = stored(make_image([world.root_items, world.clean_items]), tmp_path / "layout")
    other = stored(make_image([world.root_items]), tmp_path / "other")[0]
    victim = manifest.view.layers[1].digest

    class Swapped(Layout):
        def open(self, digest: str) -> io.BufferedReader:  # type: ignore[override]
            stolen = manifest.view.layers[0].digest if digest == victim else digest
            return super().open(stolen)  # type: ignore[return-value]

    with pytest.raises(IntegrityError, match="another digest"):
        scan_store(Swapped(layout.folder), manifest, world.rules())
    assert not other.has(victim)


def test_rules_have_digests_that_change_with_every_part() -> None:
    rules = [
        Rules(),
        Rules(base_commits=("a" * 40,)),
        Rules(future_objects=frozenset({"b" * 40})),
        Rules(unrelated="allow"),
        Rules(ancestor_tags=False),
        Rules(path_patterns=("x",)),
        Rules(base_commits=("a" * 64,)),
    ]
    assert len({one.digest for one in rules}) == len(rules)
    assert len({one.layer_digest for one in rules}) == 3
