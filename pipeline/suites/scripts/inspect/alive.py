"""Runs as root in a container: names of processes with UID 2000 in any of their four UIDs, zombies included."""

import json
from pathlib import Path

found = []
for process in Path("/proc").iterdir():
    try:
        status = (process / "status").read_text() if process.name.isdigit() else ""
    except OSError:
        continue
    if "2000" in status.partition("\nUid:")[2].partition("\n")[0].split():
        found.append(status.partition("\n")[0])
print(json.dumps(found))
