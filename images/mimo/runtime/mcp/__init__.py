"""Stands where the package mcp would be, which is not in this image; see `fastmcp` beside it."""
