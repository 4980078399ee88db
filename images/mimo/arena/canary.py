"""A test that must fail: added to the hidden tests after they passed, it shows whether failing is possible at all.

A repair's own code runs inside the test process. If importing it ends the process with 0, or makes every test pass,
then the canary passes too, and the verdict is not believed. Its name and its condition are different each time.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable


def canary_for(paths: Iterable[str]) -> tuple[str, str] | None:
    """The test file to append to and the text to append; None when no path is a test file of a known language."""
    for path in sorted(paths, reverse=True):
        name = path.rpartition("/")[2]
        if name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py")):
            return path, _python()
        if name.endswith("_test.go"):
            return path, _go()
    return None


def _python() -> str:
    value = secrets.randbelow(1 << 40)
    return f"\n\ndef test_{secrets.token_hex(8)}():\n    assert {value} == {value + 1 + secrets.randbelow(1 << 20)}\n"


def _go() -> str:
    return f'\n\nfunc Test{secrets.token_hex(8).upper()}(t *testing.T) {{\n\tt.Fatal("{secrets.token_hex(8)}")\n}}\n'
