"""Two releases -> what changed between them: one list that the report, report.md and `nox -s diff` all show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Literal

from pipeline.model.evidence import Snapshot, SnapshotPackage
from pipeline.report.facts import ReleaseFacts
from pipeline.report.snapshot import take_snapshot
from pipeline.report.visible import visible

Kind = Literal["added", "removed", "changed"]
_MARKS: Mapping[Kind, str] = {"added": "+", "removed": "-", "changed": "~"}


@dataclass(frozen=True)
class Change:
    """One difference: what it is about, its value before and after (empty where there was none), in which images."""

    kind: Kind
    what: str
    before: str
    after: str
    images: tuple[str, ...] = ()


@dataclass(frozen=True)
class Changes:
    """From `old` to `new` (`<release> on <target>`). Sizes in bytes; a group without a difference is empty."""

    old: str
    new: str
    signing: tuple[Change, ...]
    images: tuple[Change, ...]
    sizes: tuple[Change, ...]
    layers: tuple[Change, ...]
    packages: tuple[Change, ...]
    licences: tuple[Change, ...]
    checks: tuple[Change, ...]
    policies: tuple[Change, ...]

    @property
    def groups(self) -> tuple[tuple[str, tuple[Change, ...]], ...]:
        """Name and changes of every group, in reading order."""
        return tuple((field.name, getattr(self, field.name)) for field in fields(self)[2:])


def compare_releases(old: ReleaseFacts, new: ReleaseFacts) -> Changes:
    """What changed from one release to another."""
    return compare(take_snapshot(old), take_snapshot(new))


def compare(old: Snapshot, new: Snapshot) -> Changes:
    """What changed from one snapshot to another: pure, and sorted."""
    return Changes(
        old=f"{old.release} on {old.target}",
        new=f"{new.release} on {new.target}",
        signing=_differences(_signing(old), _signing(new)),
        images=_differences(*({each.image: each.manifest_digest for each in side.images} for side in (old, new))),
        sizes=_differences(_sizes(old), _sizes(new)),
        layers=tuple(_layers(old, new)),
        packages=tuple(_packages(old, new)),
        licences=tuple(_licences(old, new)),
        checks=tuple(_checks(old, new)),
        policies=tuple(_policies(old, new)),
    )


def count_kinds(changes: Iterable[Change]) -> str:
    """`2 added, 1 removed`; `no difference` for none."""
    kinds = [change.kind for change in changes]
    said = [f"{kinds.count(kind):,} {kind}" for kind in _MARKS if kind in kinds]
    return ", ".join(said) or "no difference"


def render_changes(changes: Changes) -> str:
    """The whole list as text for a terminal, one line a change."""
    return "\n".join(_lines(changes)) + "\n"


def _lines(changes: Changes) -> Iterator[str]:
    yield f"from {changes.old} to {changes.new}"
    for name, listed in changes.groups:
        yield f"\n{name}: {count_kinds(listed)}"
        for change in listed:
            value = " -> ".join(visible(side) for side in (change.before, change.after) if side)
            images = f"  [{', '.join(change.images)}]" if change.images else ""
            yield f"  {_MARKS[change.kind]} {visible(change.what)}{': ' if value else ''}{value}{images}"


def _differences(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[Change, ...]:
    """By key; values that are equal are left out."""
    return tuple(
        Change(_kind(key in old, key in new), key, old.get(key, ""), new.get(key, ""))
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    )


def _kind(before: bool, after: bool) -> Kind:
    return "changed" if before and after else "added" if after else "removed"


def _signing(side: Snapshot) -> dict[str, str]:
    return {"identity": side.identity, "issuer": side.issuer}


def _sizes(side: Snapshot) -> dict[str, str]:
    found = {each.image: f"{each.compressed_bytes:,} bytes" for each in side.images}
    return found | {"all layers, counted once": f"{side.layers_once_bytes:,} bytes"}


def _layers(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    before, after = ({layer.digest: layer for layer in side.layers} for side in (old, new))
    for digest in sorted(before.keys() ^ after.keys()):
        layer, gone = before.get(digest) or after[digest], digest in before
        size = f"{layer.size:,} bytes"
        yield Change(_kind(gone, not gone), digest, size if gone else "", "" if gone else size, layer.images)


def _packages(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    """In images that both releases have; the contents of an image that came or went are one line."""
    shared = _ids(old) & _ids(new)
    before, after = _versions(old.packages, shared), _versions(new.packages, shared)
    moves: dict[tuple[str, Kind, str, str], list[str]] = {}
    for key in sorted(before.keys() | after.keys()):
        was, now = before.get(key), after.get(key)
        if was != now:
            kind = _kind(was is not None, now is not None)
            moves.setdefault((key[0], kind, ", ".join(was or ()), ", ".join(now or ())), []).append(key[1])
    for (name, kind, old_version, new_version), images in sorted(moves.items()):
        yield Change(kind, name, old_version, new_version, tuple(images))
    yield from _whole_images(old, new, "packages", lambda side, image: sum(image in p.images for p in side.packages))


def _versions(packages: Iterable[SnapshotPackage], images: set[str]) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for package in packages:
        for image in images.intersection(package.images):
            versions = found.setdefault((f"{package.ecosystem} {package.name}", image), [])
            if package.version not in versions:
                versions.append(package.version)
    return found


def _ids(side: Snapshot) -> set[str]:
    return {each.image for each in side.images}


def _whole_images(old: Snapshot, new: Snapshot, noun: str, count: Callable[[Snapshot, str], int]) -> Iterator[Change]:
    gone = _ids(old) - _ids(new)
    for image in sorted(_ids(old) ^ _ids(new)):
        text = f"{count(old if image in gone else new, image):,} {noun}"
        if image in gone:
            yield Change("removed", f"all of {image}", text, "", (image,))
        else:
            yield Change("added", f"all of {image}", "", text, (image,))


def _licences(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    before, after = _licence_owners(old), _licence_owners(new)
    for licence in sorted(before.keys() ^ after.keys()):
        gone = licence in before
        names = before.get(licence) or after[licence]
        text = ", ".join(names[:5]) + (f" and {len(names) - 5:,} more" if len(names) > 5 else "")
        yield Change(_kind(gone, not gone), licence, text if gone else "", "" if gone else text)


def _licence_owners(side: Snapshot) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for package in side.packages:
        for licence in package.licences or ("(states none)",):
            names = found.setdefault(licence, [])
            if package.name not in names:
                names.append(package.name)
    return found


def _checks(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    before, after = _outcomes(old), _outcomes(new)
    for image in sorted(before.keys() & after.keys()):
        for each in _differences(before[image], after[image]):
            yield Change(each.kind, each.what, each.before, each.after, (image,))
    yield from _whole_images(old, new, "checks", lambda side, image: len(_outcomes(side).get(image, ())))


def _outcomes(side: Snapshot) -> dict[str, dict[str, str]]:
    return {checks.image: dict.fromkeys(checks.passed, "pass") | checks.others for checks in side.checks}


def _policies(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    before, after = ({each.policy: each for each in side.policies} for side in (old, new))
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name), after.get(name)
        if was == now:
            continue
        same = was is not None and now is not None and was.rule == now.rule
        note = "" if same or was is None or now is None else " (its rule changed)"
        yield Change(
            _kind(was is not None, now is not None),
            name,
            was.outcome if was else "",
            f"{now.outcome}{note}" if now else "",
        )
