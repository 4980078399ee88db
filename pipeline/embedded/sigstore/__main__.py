"""`python -m pipeline.embedded.sigstore STATE_DIR PORT`: serve until SIGTERM or SIGINT.

Ready when GET /api/v2/trustBundle answers.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path

from pipeline.embedded.sigstore.server import PrivateSigstore
from pipeline.errors import PipelineError


def main(argv: list[str]) -> int:
    """Serve; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.embedded.sigstore", description=__doc__)
    parser.add_argument("state_dir", type=Path, help="keys and logs, made when absent")
    parser.add_argument("port", type=int, help="on 127.0.0.1")
    arguments = parser.parse_args(argv)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    try:
        with PrivateSigstore(arguments.state_dir, arguments.port):
            stopping.wait()
    except PipelineError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
