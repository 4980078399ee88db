"""Which package needs which: declared requirements, resolved among the packages that are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from packaging.utils import canonicalize_name

from pipeline.sbom.package import Package


def make_graph(packages: Sequence[Package]) -> dict[str, tuple[str, ...]]:
    """Package ref -> sorted refs of what it needs. A requirement that nothing installed meets has no edge.

    Of several installations of one name the one beside the requirer is meant; elsewhere a name counts only when it is
    there once, since nothing says which of two a program would load.
    """
    named: dict[tuple[str, str], list[Package]] = {}
    for package in packages:
        for name in {package.name, *package.provides}:
            named.setdefault((package.ecosystem, canonicalize_name(name)), []).append(package)
    return {package.ref: _needs(package, named) for package in packages}


def _needs(package: Package, named: Mapping[tuple[str, str], list[Package]]) -> tuple[str, ...]:
    needed = set()
    for alternatives in package.requires:
        for name in alternatives:
            choice = _choose(package, named.get((package.ecosystem, canonicalize_name(name)), []))
            if choice is not None and choice.ref != package.ref:
                needed.add(choice.ref)
                break
    return tuple(sorted(needed))


def _choose(package: Package, candidates: Sequence[Package]) -> Package | None:
    if package.ecosystem == "deb":
        same = [each for each in candidates if _arch(each) in ("all", _arch(package))]
        return min(same or candidates, key=lambda each: each.ref, default=None)
    place = package.location.rpartition("/")[0]
    beside = [each for each in candidates if each.location.rpartition("/")[0] == place]
    if beside:
        return min(beside, key=lambda each: each.ref)
    return candidates[0] if len(candidates) == 1 else None


def _arch(package: Package) -> str:
    qualifiers = package.purl.qualifiers
    return qualifiers.get("arch", "") if isinstance(qualifiers, dict) else ""
