"""Finds future history and fixtures in any layer. Nothing that is scanned is ever executed."""
