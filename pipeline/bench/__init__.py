"""Measures the figures that the design names and prints each beside what is to be reached. It measures, never judges.

Reading order: `goals` (what is to be reached), `figures` (one measured value), `table`, then a module for each group.
"""
