"""Verbs that read evidence and print: nothing is built, published or written."""

from __future__ import annotations

import argparse

from pipeline.world import Settings, World


def diff(options: argparse.Namespace, settings: Settings) -> None:
    """Print what changed between two evidence folders, `options.old` and `options.new`, both verified offline first."""
    from pipeline.report.changes import render_changes
    from pipeline.stages.comparison import compare_folders

    world = World(options.release, options.target, settings)
    print(render_changes(compare_folders(options.old, options.new, world.make_reviewer, world.reporter)), end="")
