"""A vendored curriculum: exactly the bytes that image.yaml names, and the interface that the image calls.

Nothing is executed here. `adapters.vendored` runs the module, outside any image, to see that it is deterministic.
"""

from __future__ import annotations

import ast
import hashlib

from pipeline.derive.layer import Entry
from pipeline.errors import ConfigError, HostileInputError, IntegrityError
from pipeline.model.release import VendoredCurriculum

MAX_MODULE_BYTES = 1 << 20
IMAGE_PATH = "opt/arena/workflow/vendored.py"
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
    names = set()
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return frozenset(names)


def _missing(what: str, where: str) -> ConfigError:
    return ConfigError(
        f"the vendored curriculum does not define {what} at its top level",
        where=where,
        remedy="docs/families.md, section 'A vendored curriculum', describes the interface",
    )
