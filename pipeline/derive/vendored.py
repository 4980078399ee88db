"""A vendored curriculum: exactly the bytes that image.yaml names, and the interface that the image calls.

Nothing is executed here. `adapters.vendored` runs the module, outside any image, to see that it is deterministic.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
from collections.abc import Iterable, Iterator

from pipeline.derive.layer import Entry
from pipeline.errors import ConfigError, HostileInputError, IntegrityError
from pipeline.model.release import VendoredCurriculum

MAX_MODULE_BYTES = 1 << 20
IMAGE_PATH = "opt/arena/workflow/vendored.py"
DIFFICULTIES, SEEDS = (1, 2), (101, 307)
_FUNCTIONS = {"make_task": ("task_id", "seed", "difficulty"), "grade": ("task", "answer")}


def check_vendored(raw: bytes, spec: VendoredCurriculum) -> None:
    """IntegrityError for other bytes, HostileInputError for what does not parse, ConfigError for another interface."""
    # 1. The bytes are the ones that were reviewed.
    found = hashlib.sha256(raw).hexdigest()
    if found != spec.sha256:
        raise IntegrityError(
            f"the vendored curriculum has SHA-256 {found}, image.yaml says {spec.sha256}",
            where=spec.source,
            remedy=f"take {spec.path} of {spec.repository} at {spec.revision} again, or review the change and pin it",
        )
    # 2. They are a Python module.
    tree = _parsed(raw, spec.source)
    # 3. It defines what the image calls, at its top level.
    for name, parameters in _FUNCTIONS.items():
        _check_function(tree, name, parameters, spec.source)
    if "TASK_IDS" not in _assigned(tree):
        raise _missing("TASK_IDS", spec.source)


def find_case_ids(raw: bytes, where: str) -> tuple[str, ...] | None:
    """The module's case ids, in its order, where TASK_IDS is written out; None where it is computed.

    HostileInputError when the bytes are not a module. Nothing is run.
    """
    tree = _parsed(raw, where)
    if _stores(tree, "TASK_IDS") != 1:
        return None
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and "TASK_IDS" in _targets(node):
            families = _literal(node.value)
            return None if families is None else tuple(_case_ids(families))
    return None


def make_vendored_entry(raw: bytes) -> Entry:
    """The module as the image has it: byte for byte, for root alone, beside our own curriculum."""
    return Entry(IMAGE_PATH, "file", raw, 0o600)


def _parsed(raw: bytes, where: str) -> ast.Module:
    if len(raw) > MAX_MODULE_BYTES:
        raise HostileInputError(f"the vendored curriculum is larger than {MAX_MODULE_BYTES} bytes", where=where)
    try:
        tree = ast.parse(raw, where)
        compile(tree, where, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise HostileInputError(f"the vendored curriculum is not a Python module: {error}", where=where) from error
    return tree


def _check_function(tree: ast.Module, name: str, parameters: tuple[str, ...], where: str) -> None:
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    if not found:
        raise _missing(f"{name}({', '.join(parameters)})", where)
    arguments = found[-1].args
    positional = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    required = len(positional) - len(arguments.defaults)
    keywords = [default for default in arguments.kw_defaults if default is None]
    if len(positional) < len(parameters) or required > len(parameters) or keywords:
        raise ConfigError(
            f"{name} of the vendored curriculum takes {len(positional)} arguments, the image gives {len(parameters)}",
            where=f"{where}:{found[-1].lineno}",
            remedy=f"it must be callable as {name}({', '.join(parameters)})",
        )


def _assigned(tree: ast.Module) -> frozenset[str]:
    return frozenset(name for node in tree.body for name in _targets(node))


def _targets(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _stores(tree: ast.Module, name: str) -> int:
    """How often anything in the module, at any depth, binds the name."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name)
    return sum(isinstance(node.ctx, ast.Store) for node in nodes)


def _literal(value: ast.expr | None) -> tuple[str, ...] | None:
    try:
        found = ast.literal_eval(value) if value is not None else None
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None
    return tuple(found) if isinstance(found, (tuple, list)) and all(isinstance(name, str) for name in found) else None


def _case_ids(families: Iterable[str]) -> Iterator[str]:
    """As the image makes them."""
    for family, difficulty, seed in itertools.product(families, DIFFICULTIES, SEEDS):
        yield f"{family}-d{difficulty}-s{seed}"


def _missing(what: str, where: str) -> ConfigError:
    return ConfigError(
        f"the vendored curriculum does not define {what} at its top level",
        where=where,
        remedy="docs/families.md, section 'A vendored curriculum', describes the interface",
    )
