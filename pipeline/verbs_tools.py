"""The verbs beside the release itself: scan any image, show the policies, write the schemas."""

from __future__ import annotations

import argparse
from pathlib import Path

from pipeline.errors import StageError, VerificationError
from pipeline.files import read_bytes_limited, write_atomic
from pipeline.model.reference import Reference, load_reference
from pipeline.world import Settings, World


def scan(options: argparse.Namespace, settings: Settings) -> None:
    """Scan an image of a registry, anonymously, or of an OCI layout; VerificationError when anything is found."""
    from pipeline.adapters.registry import AnonymousRegistry
    from pipeline.layout import Layout
    from pipeline.scan.rules import Rules
    from pipeline.stages.scan import render, scan_registry, scan_store

    rules = Rules(base_commits=tuple(options.base_commit))
    if Path(options.image).is_dir():
        layout = Layout(Path(options.image))
        found = scan_store(layout, layout.load_manifest(layout.load_index().manifests[0]), rules)[0]
    else:
        found = scan_registry(AnonymousRegistry(), _reference(options.image), rules)[0]
    print(found.to_bytes().decode() if options.json else render(found), end="\n" if not options.json else "")
    if found.leaks:
        raise VerificationError(
            f"{len(found.leaks)} findings", where=options.image, remedy="strip the layers that are named above"
        )


def _reference(text: str) -> Reference:
    return load_reference(text, "command line")


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
