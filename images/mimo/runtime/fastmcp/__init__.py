"""Stands where the package fastmcp would be, which is not in this image.

OpenEnv's server imports the names below at start-up and uses them only for environments that offer MCP tools, which
none here does. Using one says what is missing, as an import of the absent package would.
"""


class Client:
    """An MCP client that cannot be made."""

    def __init__(self, *arguments, **options):
        raise ModuleNotFoundError("fastmcp is not installed in this image: no environment of it offers MCP tools")


class FastMCP:
    """An MCP server that cannot be made."""

    def __init__(self, *arguments, **options):
        raise ModuleNotFoundError("fastmcp is not installed in this image: no environment of it offers MCP tools")
