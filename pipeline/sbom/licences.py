"""Licence texts of package metadata -> SPDX expressions where they map, names where they do not.

Debian short names: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/#license-short-name.
Nothing is guessed: a licence that no table knows keeps its own name, as `LicenseRef-` inside an expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

from cyclonedx.spdx import fixup_id
from debian.deb822 import Deb822
from license_expression import (  # type: ignore[import-untyped]
    ExpressionError,
    ExpressionParseError,
    Licensing,
    get_spdx_licensing,
)

from pipeline.sbom.package import Licence

_MAX_COPYRIGHT_BYTES = 4 << 20
_MAX_NAME = 120
_FORMAT = re.compile(rb"\A\s*Format(?:-Specification)?:", re.IGNORECASE)
_COMMON = re.compile(r"/usr/share/common-licenses/([A-Za-z0-9][A-Za-z0-9.+-]*[A-Za-z0-9+])")
_GNU = re.compile(r"(A?GPL|LGPL|GFDL)(-NIV)?-v?(\d)(?:\.(\d))?(\+?)", re.IGNORECASE)
_SHORT_NAMES = {
    "expat": "MIT",
    "apache-2": "Apache-2.0",
    "bsd-2-clause": "BSD-2-Clause",
    "bsd-3-clause": "BSD-3-Clause",
    "bsd-4-clause": "BSD-4-Clause",
    "cc0": "CC0-1.0",
    "mpl-2": "MPL-2.0",
    "psf-2": "PSF-2.0",
    "python-2.0": "Python-2.0",
    "sil-1.1": "OFL-1.1",
    "zlib": "Zlib",
    "zpl-2.1": "ZPL-2.1",
}
_CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "BSD License": None,
    "GNU Affero General Public License v3": "AGPL-3.0-only",
    "GNU Affero General Public License v3 or later (AGPLv3+)": "AGPL-3.0-or-later",
    "GNU General Public License v2 (GPLv2)": "GPL-2.0-only",
    "GNU General Public License v2 or later (GPLv2+)": "GPL-2.0-or-later",
    "GNU General Public License v3 (GPLv3)": "GPL-3.0-only",
    "GNU General Public License v3 or later (GPLv3+)": "GPL-3.0-or-later",
    "GNU Lesser General Public License v2 or later (LGPLv2+)": "LGPL-2.0-or-later",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0-only",
    "GNU Lesser General Public License v3 or later (LGPLv3+)": "LGPL-3.0-or-later",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "MIT No Attribution License (MIT-0)": "MIT-0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
    "Zero-Clause BSD (0BSD)": "0BSD",
}


def spdx_expression(text: str) -> str | None:
    """The SPDX expression that text is, in SPDX's own spelling, or None when it is not one."""
    return None if len(text) > 4 * _MAX_NAME or "\n" in text else _expression(text)


def refused_keys(expression: str, accepts: Callable[[str], bool]) -> tuple[str, ...]:
    """Keys that stand in the way of accepting an expression: all of AND must be acceptable, one branch of OR is enough.

    Empty when it is acceptable. What is not an expression is one key, its own text.
    """
    parsed = _parsed(expression)
    return tuple(sorted(_refused(expression if parsed is None else parsed, accepts)))


def _refused(clause: Any, accepts: Callable[[str], bool]) -> set[str]:
    if isinstance(clause, _licensing().AND):
        return set[str]().union(*(_refused(part, accepts) for part in clause.args))
    if isinstance(clause, _licensing().OR):
        branches = [_refused(part, accepts) for part in clause.args]
        return set[str]().union(*branches) if all(branches) else set()
    return set() if accepts(str(clause)) else {str(clause)}


def _expression(text: str) -> str | None:
    parsed = _parsed(text)
    return None if parsed is None else str(parsed)


def _parsed(text: str) -> Any:
    """A tree of SPDX keys and `LicenseRef-` names, or None."""
    try:
        parsed = _licensing().parse(text, strict=True)
        unknown = _licensing().unknown_license_keys(parsed)
    except (ExpressionError, ExpressionParseError, ValueError, AttributeError, TypeError, RecursionError):
        return None
    return parsed if all(key.startswith("LicenseRef-") for key in unknown) else None


@cache
def _licensing() -> Licensing:
    return get_spdx_licensing()


def python_licence(expression: str, licence: str, classifiers: Iterable[str]) -> Licence:
    """Of core metadata: License-Expression, else a License that is SPDX, else classifiers, else License's own words."""
    for text in (expression, licence):
        if known := _known(text):
            return Licence(known)
    ends = [line.rpartition(" :: ")[2] for line in classifiers if line.startswith("License ::")]
    mapped = [_CLASSIFIERS.get(end) for end in ends]
    if ends and all(mapped):
        return Licence(" AND ".join(sorted({spdx for spdx in mapped if spdx})))
    names = [line for text in (expression, licence) for line in text.strip().splitlines()[:1] if line]
    return Licence(None, tuple(sorted({name[:_MAX_NAME] for name in names or ends})))


def debian_licence(copyright_file: bytes) -> Licence:
    """Of a Debian copyright file: an expression of a machine-readable one, else the common licences that it cites."""
    data = copyright_file[:_MAX_COPYRIGHT_BYTES]
    if not _FORMAT.match(data):
        return Licence(None, tuple(sorted(set(_COMMON.findall(data.decode("utf-8", "replace"))))))
    terms = sorted({term for name in _debian_names(data) for term in _debian_terms(name)})
    expression = _expression(" AND ".join(terms)) if terms else None
    return Licence(expression) if expression or not terms else Licence(None, tuple(terms))


def _debian_names(data: bytes) -> Iterator[str]:
    text = data.decode("utf-8", "replace").splitlines()
    for paragraph in Deb822.iter_paragraphs(text):
        if "files" in paragraph and "license" in paragraph:
            yield paragraph["license"].partition("\n")[0].strip()


def _debian_terms(text: str) -> Iterator[str]:
    """`GPL-2+ or Artistic, and BSD-3-clause` -> `(GPL-2.0-or-later OR LicenseRef-Artistic)` and `BSD-3-Clause`."""
    for group in re.split(r",\s*and\s+", text[: 4 * _MAX_NAME], flags=re.IGNORECASE):
        pieces = re.split(r"\s+(and/or|and|or)\s+|\s*,\s*", group.strip(), flags=re.IGNORECASE)
        words = [_debian_word(piece) for piece in pieces if piece]
        if "OR" in words:
            yield f"({' '.join(words)})"
        else:
            yield from (word for word in words if word != "AND")


def _debian_word(piece: str) -> str:
    lowered = piece.lower()
    if lowered in ("and", "or", "and/or"):
        return "AND" if lowered == "and" else "OR"
    return _short_name(piece) or _reference(piece)


def _short_name(name: str) -> str | None:
    if gnu := _GNU.fullmatch(name):
        family, invariants, major, minor, later = gnu.groups()
        middle = "-no-invariants" if invariants else ""
        return f"{family.upper()}-{major}.{minor or 0}{middle}-{'or-later' if later else 'only'}"
    return _SHORT_NAMES.get(name.lower()) or fixup_id(name)


def _reference(name: str) -> str:
    """A name that SPDX does not list, in the form that an expression can hold."""
    return "LicenseRef-" + (re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-")[:_MAX_NAME] or "unnamed")


def _known(text: str) -> str | None:
    text = text.strip()
    if not text or len(text) > _MAX_NAME:
        return None
    return fixup_id(text) or spdx_expression(text)
