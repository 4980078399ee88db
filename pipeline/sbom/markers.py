"""What a Python distribution requires on the images' platform, without extras. Markers: PEP 508."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from packaging.markers import Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

_SECTION = re.compile(r"\[([^:\]]*)(?::(.*))?\]")


def required_names(lines: Iterable[str], python: str) -> tuple[str, ...]:
    """Normal names of `Requires-Dist` lines that hold for CPython `python` (such as 3.11) on linux/amd64."""
    environment = _environment(python)
    return tuple(sorted({name for line in lines for name in _name(line, environment)}))


def requires_txt_names(text: str, python: str) -> tuple[str, ...]:
    """The same of setuptools' `requires.txt`: sections are `[extra]`, `[:marker]` or `[extra:marker]`."""
    lines, suffix, extra = [], "", ""
    for line in map(str.strip, text.splitlines()):
        if section := _SECTION.fullmatch(line):
            extra, suffix = section[1], f"; {section[2]}" if section[2] else ""
        elif line and not extra:
            lines.append(line + suffix)
    return required_names(lines, python)


def _name(line: str, environment: dict[str, str]) -> Iterator[str]:
    try:
        requirement = Requirement(line)
        if requirement.marker is None or _holds(requirement.marker, environment):
            yield canonicalize_name(requirement.name)
    except (InvalidRequirement, UndefinedComparison, UndefinedEnvironmentName):
        return


def _holds(marker: Marker, environment: dict[str, str]) -> bool:
    return marker.evaluate(dict(environment))


def _environment(python: str) -> dict[str, str]:
    """Every marker variable, so that none is taken from the machine that this runs on."""
    return {
        "implementation_name": "cpython",
        "implementation_version": f"{python}.0",
        "os_name": "posix",
        "platform_machine": "x86_64",
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": f"{python}.0",
        "python_version": python,
        "sys_platform": "linux",
        "extra": "",
    }
