"""What goes wrong, told apart: a mistake of the client, or of our side. Both are error replies, never rewards."""

from __future__ import annotations


class RequestError(Exception):
    """The client asked for something that the episode does not allow; the episode goes on as it was."""


class InfrastructureError(Exception):
    """The server could not do its part (start a process, restore a file, run the grader)."""
