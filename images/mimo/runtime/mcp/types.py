"""Part of the stand-in for mcp; see `fastmcp`."""


class TextContent:
    """The type of a tool's text; no tool is ever called, so nothing is an instance of it."""
