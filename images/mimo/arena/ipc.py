"""Interprocess communication that outlives processes: System V objects and the keyrings of a user.

POSIX queues and shared memory are files of /dev/mqueue and /dev/shm, which are emptied as places of the agent.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

_IPC_RMID = 0
_SYS_KEYCTL = 250
_KEYCTL_CLEAR = 7
_USER_KEYRINGS = (-4, -5)
# Of each kind: its file under /proc/sysvipc, the column of its id, and the columns of owner and creator.
_KINDS = {"shm": (1, 7, 9), "msg": (1, 7, 9), "sem": (1, 4, 6)}

_libc = ctypes.CDLL(None, use_errno=True)


def remove_system_v(uid: int, proc: Path = Path("/proc")) -> None:
    """Remove shared memory, queues and semaphores that `uid` owns or made; to be called with that UID."""
    for kind in _KINDS:
        for identifier in owned(kind, uid, proc):
            if kind == "shm":
                _libc.shmctl(identifier, _IPC_RMID, None)
            elif kind == "msg":
                _libc.msgctl(identifier, _IPC_RMID, None)
            else:
                _libc.semctl(identifier, 0, _IPC_RMID)


def owned(kind: str, uid: int, proc: Path = Path("/proc")) -> list[int]:
    """Identifiers of System V objects of `kind` (shm, msg, sem) that `uid` owns or made."""
    column, owner, creator = _KINDS[kind]
    try:
        rows = (proc / "sysvipc" / kind).read_text().splitlines()[1:]
    except FileNotFoundError:
        return []
    fields = (row.split() for row in rows)
    return [int(row[column]) for row in fields if str(uid) in (row[owner], row[creator])]


def clear_keyrings() -> None:
    """Empty the user's keyrings; to be called with the agent's UID. A kernel that forbids keys holds none."""
    for keyring in _USER_KEYRINGS:
        _libc.syscall(ctypes.c_long(_SYS_KEYCTL), _KEYCTL_CLEAR, keyring, 0, 0, 0)
