"""`python -m pipeline.bench WORK ...`: what is measured in a process of its own. Prints one JSON document."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> JsonValue:
    """Run one piece of work; its result."""
    work, *rest = arguments
    if work == "derive":
        return _derive(rest, environment)
    from pipeline.bench import speed

    return speed.WORK[work](rest)


def _derive(arguments: Sequence[str], environment: Mapping[str, str]) -> JsonValue:
    from pipeline.bench.derive import copy_inputs, derive_digests
    from pipeline.world import World, load_settings

    release, target, revision, folder = arguments
    settings = load_settings(environment)
    here = World(Path(release), target, settings)
    Path(folder).mkdir()
    there = World(copy_inputs(here.paths.root, Path(folder), here.paths.cache), target, settings)
    return dict(derive_digests(here, there, revision))


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:], os.environ)))
