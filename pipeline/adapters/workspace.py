"""Moved to pipeline.layout: stages read and write layouts too."""

from pipeline.layout import Layout

__all__ = ["Layout"]
