"""Makes hidden tests fail, after they passed, to see whether failing is possible at all.

A repair's own code runs inside the test process. If importing it ends the process with 0, or if it makes every test
pass, then tests that must fail pass too, and the verdict is not believed. Every test is changed, since the command may
select some by name; it still does its work before it fails, so whatever it imports late is imported.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable

_PYTHON = """

import functools as {name}_tools


def {name}(function):
    @{name}_tools.wraps(function)
    def run(*arguments, **options):
        function(*arguments, **options)
        raise AssertionError("{name}")

    return run


for {name}_key, {name}_value in list(globals().items()):
    if isinstance({name}_value, type):
        for {name}_method in [name for name in vars({name}_value) if name.startswith("test")]:
            setattr({name}_value, {name}_method, {name}(getattr({name}_value, {name}_method)))
    elif {name}_key.startswith("test") and callable({name}_value):
        globals()[{name}_key] = {name}({name}_value)
"""
_GO = """

func init() {{
	panic("{name}")
}}
"""


def canaries_for(paths: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Test files and the text to append to each; none when no path is a test file of a known language."""
    found = []
    for path in sorted(paths):
        name = path.rpartition("/")[2]
        if name.endswith(".py") and (name.startswith("test") or name.endswith("_test.py")):
            found.append((path, _PYTHON.format(name=f"_{secrets.token_hex(8)}")))
        elif name.endswith("_test.go"):
            found.append((path, _GO.format(name=secrets.token_hex(8))))
    return tuple(found)
