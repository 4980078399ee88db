"""The verb that measures. Falling short is printed, and is no failure: a bench measures, it does not judge."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pipeline.world import Settings, World

if TYPE_CHECKING:
    from pipeline.bench.figures import Figure


def bench(options: argparse.Namespace, settings: Settings) -> None:
    """Measure the groups that `options.groups` names, print each, and write `options.json` where that is given."""
    from pipeline.adapters.machine import read_load
    from pipeline.bench.session import choose_groups, describe_run, make_run, measure_group
    from pipeline.bench.table import render_group, render_outcome
    from pipeline.files import write_atomic

    groups, load = choose_groups(options.groups), read_load()
    world = World(options.release, options.target, settings)
    figures: list[Figure] = []
    for group in groups:
        measured = measure_group(world, group)
        figures += measured
        print(render_group(group, measured), end="\n\n", flush=True)
    run = make_run(load, figures)
    if options.json is not None:
        write_atomic(options.json, run.to_bytes())
    print(f"{render_outcome(figures)}\n{describe_run(run)}")
