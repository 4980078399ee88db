"""Everything an agent could have left outside its workspace, undone: processes, places, and kernel objects."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from functools import cached_property

from arena.agent import Agent
from arena.identity import as_user
from arena.ipc import clear_keyrings, remove_system_v
from arena.places import Place, Writable, find_writable, seal
from arena.processes import Reaper, kill_all
from arena.remove import clear_attributes, names_in, remove

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Cleanup:
    """`run` at each reset. `workspace` is left to whoever restores it; `root` and `extra_skip` are for tests."""

    def __init__(
        self, agent: Agent, workspace: str, reaper: Reaper, root: str = "/", extra_skip: frozenset[str] = frozenset()
    ) -> None:
        self.agent, self.workspace, self._reaper = agent, workspace, reaper
        self._find: Callable[[], Writable] = lambda: find_writable(root, agent, frozenset({workspace}) | extra_skip)

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """Directories that the agent can write; found, and loose files sealed, the first time that it is asked for."""
        writable = self._find()
        for path in writable.loose_files:
            seal(path)
        return writable.places

    def run(self) -> None:
        """Kill, then wipe; InfrastructureError or OSError when something cannot be undone."""
        kill_all(self.agent.uid, self._reaper)
        # As their owner: root of a container may not remove another user's objects.
        with as_user(self.agent.uid):
            remove_system_v(self.agent.uid)
            clear_keyrings()
        for place in self.places:
            self.empty(place)

    def wipe_home(self) -> None:
        """Empty the agent's home alone, for a grader that must not read the agent's dot files."""
        for place in self.places:
            if place.path == self.agent.home:
                self.empty(place)

    def empty(self, place: Place) -> None:
        """Remove what is in a place. In a place with the sticky bit, what root owns was never the agent's: it stays."""
        try:
            directory_fd = os.open(place.path, _DIRECTORY)
        except FileNotFoundError:
            # A place within a place, gone with it.
            return
        try:
            if os.fstat(directory_fd).st_uid == self.agent.uid:
                # First: with some of them nothing within could be moved.
                clear_attributes(directory_fd)
            sticky = place.mode & stat.S_ISVTX
            for name in names_in(directory_fd):
                if not (sticky and self._is_roots(name, directory_fd)):
                    remove(name, directory_fd)
            self._restore_place(place, directory_fd)
        finally:
            os.close(directory_fd)

    def _is_roots(self, name: str, directory_fd: int) -> bool:
        state = os.stat(name, dir_fd=directory_fd, follow_symlinks=False)
        # A file with a second name may be a link that the agent made: some kernels let it.
        return state.st_uid == 0 and (stat.S_ISDIR(state.st_mode) or state.st_nlink == 1)

    def _restore_place(self, place: Place, directory_fd: int) -> None:
        """Its times tell nothing; the agent's own directories get their mode back."""
        if os.fstat(directory_fd).st_uid == self.agent.uid:
            os.fchown(directory_fd, self.agent.uid, self.agent.gid)
            os.fchmod(directory_fd, place.mode)
        os.utime(directory_fd, ns=(place.mtime_ns, place.mtime_ns))
