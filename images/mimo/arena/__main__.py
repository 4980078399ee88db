"""Start the server of a repair image: `/usr/bin/python3 -I /opt/arena/arena`. Wiring, and nothing else."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

HOME = Path("/opt/arena")
PORT = 8000


def main() -> None:
    """Serve until SIGTERM."""
    # PID 1 ignores signals without a handler: an early stop must not wait for the engine's kill.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    sys.path[:1] = [str(HOME / "runtime"), str(HOME)]
    from arena.processes import harden_server

    harden_server()
    from arena import absent

    absent.install()
    from arena.wiring import repair_arena

    arena, name = repair_arena(HOME)
    from arena.server import serve

    serve(arena, name, PORT)


if __name__ == "__main__":
    main()
