"""Runs as root in a container: what UID 2000 can write outside the workspace (argument 1), as JSON lists."""

import json
import os
import stat
import sys

SKIP = {sys.argv[1], "/proc", "/sys", "/dev/pts", "/opt/arena"}


def may_write(state: os.stat_result) -> bool:
    """Owner, group or everybody."""
    by_group = state.st_gid == 2000 and state.st_mode & stat.S_IWGRP
    return state.st_uid == 2000 or bool(by_group) or bool(state.st_mode & stat.S_IWOTH)


folders_found, files_found = [], []
for folder, folders, files in os.walk("/"):
    folders[:] = [name for name in folders if os.path.join(folder, name) not in SKIP]  # noqa: PTH118 - odd names
    if may_write(os.lstat(folder)):
        folders_found.append(folder)
    for name in files:
        path = os.path.join(folder, name)  # noqa: PTH118 - odd names
        state = os.lstat(path)
        if stat.S_ISREG(state.st_mode) and may_write(state):
            files_found.append(path)
print(json.dumps({"folders": sorted(folders_found), "files": sorted(files_found)}))
