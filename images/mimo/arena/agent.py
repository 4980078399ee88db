"""Who acts in an episode: the unprivileged account that every command and every grader runs as."""

from __future__ import annotations

from dataclasses import dataclass

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Agent:
    """Numeric ids, and the home that its HOME names."""

    uid: int = 2000
    gid: int = 2000
    name: str = "arena-agent"
    home: str = "/home/arena-agent"

    def environment(self) -> dict[str, str]:
        """All variables of a command: nothing of the server's own environment, no PYTHONPATH."""
        return {
            "HOME": self.home,
            "LANG": "C.UTF-8",
            "LOGNAME": self.name,
            "PATH": PATH,
            "SHELL": "/bin/bash",
            "TERM": "dumb",
            "USER": self.name,
        }
