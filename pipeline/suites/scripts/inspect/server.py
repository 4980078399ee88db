"""Runs as root in a container: figures of the server, process 1. Memory in KiB."""

import json
from pathlib import Path

status = Path("/proc/1/status").read_text()


def field(name: str) -> int:
    """A number of the status file."""
    return int(status.partition(f"\n{name}:")[2].split()[0])


print(
    json.dumps(
        {
            "processes": sum(path.name.isdigit() for path in Path("/proc").iterdir()),
            "descriptors": len(list(Path("/proc/1/fd").iterdir())),
            "threads": field("Threads"),
            "memory": field("VmRSS"),
        }
    )
)
