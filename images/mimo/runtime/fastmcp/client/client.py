"""Part of the stand-in for fastmcp; see `fastmcp`."""


class CallToolResult:
    """The type of a tool's result; no tool is ever called, so nothing is an instance of it."""
