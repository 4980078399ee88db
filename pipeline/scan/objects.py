"""Git objects: their ids and what they point to. Formats: git's gitformat-* and hash-function-transition documents."""

from __future__ import annotations

import hashlib
import re
from typing import Any, Literal, NamedTuple

from pipeline.errors import HostileInputError

Kind = Literal["commit", "tree", "blob", "tag"]
Format = Literal["sha1", "sha256"]
KINDS: tuple[Kind, ...] = ("commit", "tree", "blob", "tag")
ID_BYTES: dict[Format, int] = {"sha1": 20, "sha256": 32}
_JOINED_BYTES = 1 << 16
GITLINK = b"160000"

_LOOSE = re.compile(rb"(commit|tree|blob|tag) (\d{1,15})\0")
_TREE = {size: re.compile(rb"(?:[0-7]{5,6} [^\0]+\0.{%d})*" % size, re.S) for size in (20, 32)}
_TREE_IDS = {size: re.compile(rb"[0-7]{5,6} [^\0]+\0(.{%d})" % size, re.S) for size in (20, 32)}
_TREE_ENTRY = {size: re.compile(rb"([0-7]{5,6}) ([^\0]+)\0(.{%d})" % size, re.S) for size in (20, 32)}


class GitObject(NamedTuple):
    """One object. `links` are the ids that it names: tree and parents, entries (submodules too), or the tagged object.

    `size` is of the content in bytes. A blob's content is not kept.
    """

    id: bytes
    kind: Kind
    size: int
    links: tuple[bytes, ...] = ()


class TreeEntry(NamedTuple):
    """One line of a tree."""

    mode: bytes
    name: bytes
    id: bytes


def hasher(kind: str, size: int, form: Format) -> Any:
    """A hash object that has taken an object's header; feed it the content to get the id."""
    return _hash(b"%s %d\0" % (kind.encode(), size), form)


def make_object(kind: Kind, data: bytes, form: Format) -> GitObject:
    """Name and read one object; HostileInputError when a commit, tree or tag is malformed."""
    size = len(data)
    if size < _JOINED_BYTES:
        one = _hash(b"%s %d\0%s" % (kind.encode(), size, data), form).digest()
    else:
        state = hasher(kind, size, form)
        state.update(data)
        one = state.digest()
    return GitObject(one, kind, size, links_of(kind, data, form) if kind != "blob" else ())


def links_of(kind: Kind, data: bytes, form: Format) -> tuple[bytes, ...]:
    """The ids that an object's content names."""
    if kind == "tree":
        _check_tree(data, ID_BYTES[form])
        return tuple(_TREE_IDS[ID_BYTES[form]].findall(data))
    if kind == "commit":
        return commit_links(data, form)
    if kind == "tag":
        return (_hex_field(data.partition(b"\n")[0], b"object ", form),)
    return ()


def commit_links(data: bytes, form: Format) -> tuple[bytes, ...]:
    """The tree and then the parents of a commit."""
    lines = data.partition(b"\n\n")[0].split(b"\n")
    links = [_hex_field(lines[0], b"tree ", form)]
    for line in lines[1:]:
        if not line.startswith(b"parent "):
            break
        links.append(_hex_field(line, b"parent ", form))
    return tuple(links)


def tree_entries(data: bytes, form: Format) -> list[TreeEntry]:
    """The lines of a tree, in its order; HostileInputError when it is malformed."""
    _check_tree(data, ID_BYTES[form])
    return [TreeEntry(*line) for line in _TREE_ENTRY[ID_BYTES[form]].findall(data)]


def is_loose(head: bytes) -> bool:
    """Whether the first unpacked bytes are those of a loose object."""
    return _LOOSE.match(head) is not None


def split_loose(plain_head: bytes) -> tuple[Kind, int, int]:
    """Kind, content size and header length of an unpacked loose object."""
    match = _LOOSE.match(plain_head)
    if match is None:
        raise HostileInputError("not a loose git object")
    kind = next(kind for kind in KINDS if kind.encode() == match[1])
    return kind, int(match[2]), match.end()


def _hash(data: bytes, form: Format) -> Any:
    return hashlib.sha1(data, usedforsecurity=False) if form == "sha1" else hashlib.sha256(data)


def _check_tree(data: bytes, id_bytes: int) -> None:
    if _TREE[id_bytes].fullmatch(data) is None:
        raise HostileInputError("a damaged git tree")


def _hex_field(line: bytes, prefix: bytes, form: Format) -> bytes:
    text = line[len(prefix) :]
    if not line.startswith(prefix) or not re.fullmatch(rb"[0-9a-f]{%d}" % (2 * ID_BYTES[form]), text):
        raise HostileInputError(f"a git object without its {prefix.decode().strip()} line")
    return bytes.fromhex(text.decode())
