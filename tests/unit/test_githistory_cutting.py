"""Removing a named function from source: only that, and the rest byte for byte."""

from __future__ import annotations

import ast

import pytest

from pipeline.embedded.cutting import binds, remove_function
from pipeline.errors import HostileInputError

CASES = {
    "definition": ("a = 1\n\n\ndef f(x):\n    return x\n\n\nb = 2\n", "a = 1\n\n\nb = 2\n"),
    "decorated": ("a = 1\n\n\n@one\n@two(3)\ndef f(x):\n    return x\n\n\nb = 2\n", "a = 1\n\n\nb = 2\n"),
    "async": ("async def f():\n    pass\n\n\nb = 2\n", "\n\nb = 2\n"),
    "last, without a final newline": ("a = 1\n\ndef f():\n    pass", "a = 1\n"),
    "defined twice": ("def f():\n    pass\nx = 1\ndef f():\n    pass\n", "x = 1\n"),
    "only import": ("from m import f\nb = 2\n", "b = 2\n"),
    "first of imports": ("from m import f, g\n", "from m import g\n"),
    "middle import": ("from m import e, f, g  # why\n", "from m import e, g  # why\n"),
    "last import": ("from m import e, f\n", "from m import e\n"),
    "import in brackets": ("from m import (\n    e,\n    f,\n    g,\n)\n", "from m import (\n    e,\n    g,\n)\n"),
    "last import in brackets": ("from m import (\n    e,\n    f,\n)\n", "from m import (\n    e,\n)\n"),
    "import as": ("from m import old as f, g\n", "from m import g\n"),
    "__all__": ('__all__ = [\n    "e",\n    "f",\n]\n', '__all__ = [\n    "e",\n]\n'),
    "__all__ of one": ('__all__ = ["f"]\n', "__all__ = []\n"),
    "CRLF": ("a = 1\r\n\r\ndef f():\r\n    pass\r\n\r\nb = 2\r\n", "a = 1\r\n\r\nb = 2\r\n"),
    "not ASCII before it": ("from m import é, f, g\n", "from m import é, g\n"),
}
UNTOUCHED = (
    "class C:\n    def f(self):\n        pass\n",
    "def g():\n    def f():\n        pass\n",
    "x = f()\n",
    "x = 'f'\n",
    "names = ['f']\n",
)


@pytest.mark.parametrize("name", CASES)
def test_only_the_function_goes(name: str) -> None:
    before, after = CASES[name]
    assert remove_function(before.encode(), "f", "m.py").decode() == after


@pytest.mark.parametrize("source", UNTOUCHED)
def test_what_is_not_a_module_level_function_stays(source: str) -> None:
    assert remove_function(source.encode(), "f", "m.py").decode() == source


def test_a_decorated_function_of_another_file_encoding() -> None:
    source = "# -*- coding: latin-1 -*-\nname = 'é'\n\ndef f():\n    pass\n".encode("latin-1")
    assert remove_function(source, "f", "m.py") == "# -*- coding: latin-1 -*-\nname = 'é'\n".encode("latin-1")


@pytest.mark.parametrize("source", [b"def f(:\n", b"print 'python 2'\n", b"x = 1\0\n", b"(" * 5_000 + b")" * 5_000])
def test_source_that_does_not_parse_is_refused_and_named(source: bytes) -> None:
    with pytest.raises(HostileInputError) as caught:
        remove_function(source, "f", "pkg-1.0.zip: m.py")
    assert caught.value.where == "pkg-1.0.zip: m.py"


def test_a_source_beyond_the_limit_is_refused() -> None:
    with pytest.raises(HostileInputError, match="bytes"):
        remove_function(b"#" * (5 << 20), "f", "m.py")


@pytest.mark.parametrize("source", [b"__all__ = ('f', 'g')\n", b"__all__ = [*names, *('f',)]\n"])
def test_a_form_that_would_be_left_behind_is_refused(source: bytes) -> None:
    with pytest.raises(HostileInputError, match="stays in a form"):
        remove_function(source, "f", "m.py")


def test_binds_sees_definitions_and_imports() -> None:
    assert binds(ast.parse("def f(): pass"), "f")
    assert binds(ast.parse("from m import x as f"), "f")
    assert not binds(ast.parse("class C:\n    def f(self): pass"), "f")
