"""Part of the stand-in for fastmcp; see `fastmcp`."""
