"""`python -m pipeline VERB`: the only place that reads the environment and exits; `verbs` wires adapters to stages.

Exit codes: 0 done; 1 failed; 2 a file that a person wrote is wrong; 3 a stage before is missing or stale; 4 another run
holds the lock; 5 a service is down; 6 no access; 7 bytes are not what they should be; 8 checks, policies or signatures
failed; 9 the disk refuses; 64 wrong command line; 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from pipeline.errors import PipelineError, UsageError
from pipeline.files import storage_errors
from pipeline.verbs import VERBS
from pipeline.world import load_settings

EXIT_INTERRUPTED = 130


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run one verb; returns the exit code."""
    options = _parse(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        # what stages write for good says itself where a disk refuses; what is left are spools
        with storage_errors(Path(tempfile.gettempdir())):
            VERBS[options.verb](options, load_settings(environment))
    except PipelineError as error:
        print(f"\n{options.verb} failed: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(f"\n{options.verb} was interrupted; run it again to go on", file=sys.stderr)
        return EXIT_INTERRUPTED
    return 0


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


class _Parser(argparse.ArgumentParser):
    """Says what is wrong and how the command goes, with the exit code that is documented."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(UsageError.exit_code, f"{self.prog}: {message}\n")


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = _Parser(prog="pipeline", description="Builds, publishes and re-verifies environment images.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name in VERBS:
        verb = verbs.add_parser(name)
        verb.add_argument("--release", type=Path, default=Path("release.yaml"), help="the release file")
        verb.add_argument("--target", help="a target of the release file; its default_target when absent")
        _add_arguments(name, verb)
    return parser.parse_args(arguments)


def _add_arguments(name: str, verb: argparse.ArgumentParser) -> None:
    if name == "review":
        verb.add_argument("folder", type=Path, nargs="?", help="an evidence folder; the release's own when absent")
    elif name == "scan":
        verb.add_argument("image", help="registry/repository@sha256:…, with a tag instead, or an OCI layout folder")
        verb.add_argument("--base-commit", action="append", default=[], help="what all history must be reachable from")
        verb.add_argument("--json", action="store_true", help="print the record instead of the table")
    elif name == "diff":
        verb.add_argument("old", type=Path)
        verb.add_argument("new", type=Path)
    elif name == "diagnose":
        verb.add_argument("log", type=Path, help="an exported training log")
        verb.add_argument("--tasks", type=int, help="number of tasks that the counter goes round; default: tasks.jsonl")
    elif name == "schemas":
        verb.add_argument("--check", action="store_true", help="fail when a checked-in schema is not current")
    elif name == "bench":
        verb.add_argument("groups", nargs="*", metavar="GROUP", help="release, images, scan, sigstore; all when absent")
        verb.add_argument("--json", type=Path, help="also write the figures to this file")
    elif name == "down":
        verb.add_argument("--purge", action="store_true", help="also remove all local state: images, registry, keys")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
