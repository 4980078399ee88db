"""Stand-ins for packages that the framework imports at start and that this server never uses.

The framework's MCP environment imports fastmcp and mcp, which cost 60 MB of wheels, a second of start-up and 40 MB of
memory. Nothing here serves MCP tools, so three names that only type checks look at are enough.
"""

from __future__ import annotations

import sys
from types import ModuleType

_NAMES = {
    "fastmcp": ("Client", "FastMCP"),
    "fastmcp.client": (),
    "fastmcp.client.client": ("CallToolResult",),
    "mcp": (),
    "mcp.types": ("TextContent",),
}


def install() -> None:
    """Put the stand-ins where imports find them, before the framework is imported."""
    for name, classes in _NAMES.items():
        module = ModuleType(name)
        module.__path__ = []
        for class_name in classes:
            setattr(module, class_name, type(class_name, (), {"__init__": _refuse}))
        sys.modules.setdefault(name, module)


def _refuse(self: object, *args: object, **options: object) -> None:
    raise RuntimeError("this server has no MCP tools")
