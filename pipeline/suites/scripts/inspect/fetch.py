"""Runs as root in a container: what the server's routes answer, and the hash of the task record."""

import hashlib
import json
import urllib.request
from pathlib import Path
from typing import Any


def fetch(path: str) -> Any:
    """The JSON answer of a route."""
    with urllib.request.urlopen(f"http://127.0.0.1:8000{path}", timeout=20) as reply:
        return json.load(reply)


schema = fetch("/schema")
print(
    json.dumps(
        {
            "health": fetch("/health"),
            "schema": {"action": schema["action"], "observation": schema["observation"]},
            "record": hashlib.sha256(Path("/opt/arena/record.json").read_bytes()).hexdigest(),
        }
    )
)
