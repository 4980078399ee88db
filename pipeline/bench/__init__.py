"""Measures the figures of docs/benchmarks.md and prints each beside what is to be reached. It measures, never judges.

Reading order: `goals` (what is to be reached), `figures` (one measured value), `table`, then a module for each group.
"""
