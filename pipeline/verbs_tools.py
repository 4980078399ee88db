"""The verbs beside the release itself: scan any image, show the policies, write the schemas."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from pipeline.errors import StageError, UsageError, VerificationError
from pipeline.files import read_bytes_limited, write_atomic
from pipeline.layout import Layout
from pipeline.model.oci import Manifest
from pipeline.model.reference import load_reference
from pipeline.world import Settings, World

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def scan(options: argparse.Namespace, settings: Settings) -> None:
    """Scan an image of a registry, anonymously, or of an OCI layout; VerificationError when anything is found."""
    from pipeline.adapters.registry import AnonymousRegistry
    from pipeline.scan.rules import Rules
    from pipeline.stages.scan import render, scan_registry, scan_store

    rules = Rules(base_commits=tuple(_commit(text) for text in options.base_commit))
    if Path(options.image).is_dir():
        layout = Layout(Path(options.image))
        found = scan_store(layout, _only_manifest(layout), rules)[0]
    else:
        found = scan_registry(AnonymousRegistry(), load_reference(options.image, "command line"), rules)[0]
    print(found.to_bytes().decode() if options.json else render(found), end="")
    if found.leaks:
        raise VerificationError(
            f"{len(found.leaks)} findings",
            where=options.image,
            remedy="strip the layers that are named above, or scan with the base commits that it is meant to have",
        )


def _commit(text: str) -> str:
    if not _COMMIT.fullmatch(text.lower()):
        raise UsageError(f"--base-commit {text!r}", remedy="write the whole id: 40 hex digits, or 64")
    return text.lower()


def _only_manifest(layout: Layout) -> Manifest:
    """Of one image: a layout of several would be passed after a look at one of them."""
    try:
        named = layout.load_index().manifests
    except StageError as error:
        remedy = "name a folder with oci-layout, index.json and blobs, or registry/repository@sha256:…"
        raise StageError("not an OCI image layout", where=str(layout.folder), remedy=remedy) from error
    if len(named) != 1:
        raise StageError(
            f"{len(named)} manifests; a scan is of one image",
            where=str(layout.folder / "index.json"),
            remedy="copy one image of it into a layout of its own",
        )
    return layout.load_manifest(named[0])


def policies(options: argparse.Namespace, settings: Settings) -> None:
    """Print every policy and what it said last."""
    from pipeline.checks.evaluate import Verdict
    from pipeline.checks.table import policies_table
    from pipeline.model.evidence import Verdicts
    from pipeline.model.record import canonical_json

    world = World(options.release, options.target, settings)
    last = world.paths.evidence / "policies.json"
    verdicts: tuple[Verdict, ...] = ()
    if last.is_file():
        written = Verdicts.load(read_bytes_limited(last, 64 << 20), str(last)).verdicts
        verdicts = tuple(Verdict.load(canonical_json(one), str(last)) for one in written)
    print(policies_table(world.plan.release.policies, verdicts))
    if not verdicts:
        print(f"\nno verdict yet for release {world.paths.release} on {world.paths.target}: run build, publish, verify")


def schemas(options: argparse.Namespace, settings: Settings) -> None:
    """Write docs/schemas; with --check, StageError when one is not current."""
    from pipeline.schemas import FOLDER, make_schemas

    folder = options.release.resolve().parent / FOLDER
    for name, raw in make_schemas().items():
        path = folder / name
        if options.check and (not path.is_file() or path.read_bytes() != raw):
            raise StageError("a schema is not current", where=str(path), remedy="run: nox -s schemas")
        if not options.check:
            write_atomic(path, raw)
        print(path)
