"""Runs as root in a container: whether a hook of the agent noted UID 0, and what root owns where agents write."""

import json
import os
import sys
from pathlib import Path

NOTES = Path("/tmp/who")  # noqa: S108 - where the agent's hooks write
ran_as = NOTES.read_text().split() if NOTES.exists() else []
owned = []
for top in (sys.argv[1], "/tmp", "/home/arena-agent"):  # noqa: S108
    for folder, folders, files in os.walk(top):
        paths = (os.path.join(folder, name) for name in folders + files)  # noqa: PTH118 - odd names
        owned += [path for path in paths if os.lstat(path).st_uid == 0]
print(json.dumps({"as_root": "0" in ran_as, "owned_by_root": owned[:5]}))
