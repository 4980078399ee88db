"""Remove a named function from Python source: its definition, its imports by name, and its place in `__all__`.

The places are found in the syntax tree; the text around them stays as it was, byte for byte.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence

from pipeline.errors import HostileInputError

MAX_SOURCE_BYTES = 4 << 20
Span = tuple[int, int]


def remove_function(source: bytes, function: str, where: str) -> bytes:
    """The source without a module-level function (bytes in and out; unchanged when it has none of that name).

    HostileInputError names `where` when the source does not parse, before or after.
    """
    tree = _parse(source, where)
    starts = _line_starts(source)
    spans: list[Span] = []
    for node in tree.body:
        spans += _spans_in(node, function, source, starts)
    for start, end in sorted(spans, reverse=True):
        source = source[:start] + source[end:]
    if binds(_parse(source, where), function):
        raise HostileInputError(f"{function} stays in a form that is not known here, such as a tuple", where=where)
    return source


def binds(tree: ast.Module, name: str) -> bool:
    """Whether a module's top level defines, imports or lists (in any form of `__all__`) a name."""
    return any(_defines(node, name) or _alias_of(node, name) is not None or _lists(node, name) for node in tree.body)


def _spans_in(node: ast.stmt, name: str, source: bytes, starts: Sequence[int]) -> list[Span]:
    if _defines(node, name):
        return [_definition_span(node, source, starts)]
    alias = _alias_of(node, name)
    if isinstance(node, ast.ImportFrom) and alias is not None:
        if len(node.names) == 1:
            return [_statement_span(node, starts)]
        return [_item_span(node.names, alias, starts)]
    if isinstance(node, ast.Assign) and _assigns_all(node) and isinstance(node.value, ast.List):
        items = node.value.elts
        return [
            _item_span(items, item, starts) for item in items if isinstance(item, ast.Constant) and item.value == name
        ]
    return []


def _defines(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name


def _alias_of(node: ast.stmt, name: str) -> ast.alias | None:
    if not isinstance(node, ast.ImportFrom):
        return None
    return next((alias for alias in node.names if (alias.asname or alias.name) == name), None)


def _lists(node: ast.stmt, name: str) -> bool:
    if not isinstance(node, ast.Assign) or not _assigns_all(node):
        return False
    return any(isinstance(part, ast.Constant) and part.value == name for part in ast.walk(node.value))


def _assigns_all(node: ast.Assign) -> bool:
    return any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)


def _definition_span(node: ast.stmt, source: bytes, starts: Sequence[int]) -> Span:
    """From the first decorator to the last line, with the blank lines before it; what follows keeps its own."""
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    while first > 1 and not source[starts[first - 2] : starts[first - 1]].strip():
        first -= 1
    return starts[first - 1], starts[node.end_lineno or node.lineno]


def _statement_span(node: ast.stmt, starts: Sequence[int]) -> Span:
    return starts[node.lineno - 1], starts[node.end_lineno or node.lineno]


def _item_span(items: Sequence[ast.expr | ast.alias], item: ast.expr | ast.alias, starts: Sequence[int]) -> Span:
    """An item of a list with its comma: up to the next item, or from the one before when it is the last."""
    position = items.index(item)
    if position + 1 < len(items):
        return _start(item, starts), _start(items[position + 1], starts)
    if position > 0:
        return _end(items[position - 1], starts), _end(item, starts)
    return _start(item, starts), _end(item, starts)


def _start(node: ast.expr | ast.alias, starts: Sequence[int]) -> int:
    return starts[node.lineno - 1] + node.col_offset


def _end(node: ast.expr | ast.alias, starts: Sequence[int]) -> int:
    return starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)


def _line_starts(source: bytes) -> list[int]:
    """The offset of each line, and of the end."""
    starts = [0]
    for line in source.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    return [min(start, len(source)) for start in starts]


def _parse(source: bytes, where: str) -> ast.Module:
    if len(source) > MAX_SOURCE_BYTES:
        raise HostileInputError(f"a source of {len(source)} bytes", where=where)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise HostileInputError(f"a source that does not parse: {error}", where=where) from error
