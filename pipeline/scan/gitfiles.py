"""Files that name git objects without holding them: refs, reflogs, indexes, pack indexes, commit graphs, patches.

Each reader takes bytes and gives ids; abbreviated ids (7 hex digits or more) stay text. Formats: git's gitformat-index,
gitformat-pack, gitformat-commit-graph and gitrepository-layout documents.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from pipeline.errors import HostileInputError
from pipeline.scan.buffer import Buffer, digest_of_pieces, sha1

_HEX = rb"(?<![0-9a-fA-F])([0-9a-fA-F]{64}|[0-9a-fA-F]{40})(?![0-9a-fA-F])"
_IDS = re.compile(_HEX)
_REF = re.compile(rb"\s*(?:[0-9a-fA-F]{40}|[0-9a-fA-F]{64})\s*")
_NAMING = re.compile(
    rb"(?:^|/)(?:packed-refs|[A-Z_]*HEAD|shallow|grafts|info/refs|AUTO_MERGE|BISECT_[A-Z_]+|git-rebase-todo|orig-head|onto"
    rb"|(?:refs|logs|rebase-merge|rebase-apply|sequencer|lost-found)/.+)$"
)
_PATCH_NAME = re.compile(rb"\.(?:patch|diff|mbox|rej|eml)(?:$|\.)")
_PATCH_LINES = re.compile(
    rb"^(?:From ([0-9a-f]{40}|[0-9a-f]{64}) |commit ([0-9a-f]{40}|[0-9a-f]{64})"
    rb"|index [0-9a-f]{7,64}\.\.([0-9a-f]{7,64})\b)",
    re.M,
)
_SYMBOLIC_REF = re.compile(rb"ref: (refs/[^\n]{1,1000})\n?")
SYMBOLIC = "symbolic ref to "
_STORE = re.compile(
    rb"^(.*?)/?(?:objects/(?:[0-9a-f]{2}|pack|info)/[^/]+"
    rb"|(?:refs|logs|rebase-merge|rebase-apply|sequencer|lost-found)/.+|info/(?:grafts|refs)|BISECT_[A-Z_]+|packed-refs|[A-Z_]*HEAD|shallow|index)$"
)


def store_of(path: bytes) -> bytes:
    """The git folder that a path belongs to (`repo/.git`), or the path itself when its place says nothing."""
    match = _STORE.match(path)
    return match[1] if match else path


def named_ids(path: bytes, data: bytes) -> list[tuple[str, list[bytes]]]:
    """What kinds of naming this file does, with the ids; empty when its place and content are not of that kind.

    Zero ids (a reflog's beginning) are left out. A file under refs/ counts only when it is one id. A symbolic HEAD
    gives `SYMBOLIC` and the ref, without ids; packed refs give one pair a ref.
    """
    match = _NAMING.search(path)
    if match is None or b"\0" in data[:4096]:
        return []
    if path.endswith(b"packed-refs"):
        return [(f"packed-refs {ref}", ids) for ref, ids in _packed_refs(data)]
    if (symbolic := _SYMBOLIC_REF.fullmatch(data)) is not None:
        return [(SYMBOLIC + symbolic[1].decode("utf-8", "replace"), [])]
    if b"/refs/" in b"/" + path and b"/logs/" not in b"/" + path and not _REF.fullmatch(data):
        return []
    ids = hex_ids(data)
    return [(_how(path), ids)] if ids else []


def hex_ids(data: bytes) -> list[bytes]:
    """Every whole object id in a text, once each, without zero ids."""
    ids = [bytes.fromhex(text.decode()) for text in _IDS.findall(data)]
    return [one for one in dict.fromkeys(ids) if any(one)]


def patch_ids(path: bytes, data: bytes) -> list[bytes]:
    """Commits and post-image blobs that a patch names, as hex text, often abbreviated; empty when it is no patch."""
    if not _PATCH_NAME.search(path) and not data.startswith((b"From ", b"diff --git ", b"commit ")):
        return []
    texts = [first or second or third for first, second, third in _PATCH_LINES.findall(data)]
    return [text for text in dict.fromkeys(texts) if text.strip(b"0")]


def index_ids(data: bytes) -> list[bytes]:
    """Blobs that an index (DIRC, versions 2 to 4) names; HostileInputError when it is damaged."""
    try:
        return _index_ids(data)
    except IndexError as error:
        raise HostileInputError("a truncated git index") from error


def _index_ids(data: bytes) -> list[bytes]:
    version, count = int.from_bytes(data[4:8], "big"), int.from_bytes(data[8:12], "big")
    id_bytes = 20 if _index_is_sha1(data) else 32
    if version not in (2, 3, 4) or count * (42 + id_bytes) > len(data):
        raise HostileInputError("a git index of an unknown version or count")
    ids, at = [], 12
    for _ in range(count):
        ids.append(data[at + 40 : at + 40 + id_bytes])
        at = _after_index_entry(data, at, 40 + id_bytes, version)
    return list(dict.fromkeys(ids)) + _extension_ids(data, at, id_bytes)


def pack_index_ids(data: Buffer) -> list[bytes]:
    """Objects that a pack index (.idx, versions 1 and 2) names."""
    if data[:4] == b"\xfftOc":
        count = int.from_bytes(data[8 + 255 * 4 : 8 + 256 * 4], "big")
        for id_bytes in (20, 32):
            least = 1032 + count * (id_bytes + 8) + 2 * id_bytes
            if least <= len(data) <= least + 8 * count and _is_hash(data, id_bytes):
                return _split(data[1032 : 1032 + count * id_bytes], id_bytes)
        raise HostileInputError("a damaged git pack index")
    count = int.from_bytes(data[255 * 4 : 256 * 4], "big")
    if 1024 + 24 * count + 40 != len(data):
        raise HostileInputError("a damaged git pack index")
    return [data[at + 4 : at + 24] for at in range(1024, 1024 + 24 * count, 24)]


def chunked_ids(data: Buffer) -> list[bytes]:
    """Objects that a multi-pack index (MIDX) or commit graph (CGPH) names: its OIDL chunk."""
    head = data[:12]
    if len(head) < 12:
        raise HostileInputError("a truncated git multi-pack index or commit graph")
    id_bytes, rows = {1: 20, 2: 32}.get(head[5]), head[6]
    table = 12 if head.startswith(b"MIDX") else 8
    for row in range(rows):
        at = table + 12 * row
        if data[at : at + 4] == b"OIDL" and id_bytes:
            start, end = (int.from_bytes(data[at + skip : at + skip + 8], "big") for skip in (4, 16))
            if start <= end <= len(data) and (end - start) % id_bytes == 0:
                return _split(data[start:end], id_bytes)
    raise HostileInputError("a damaged git multi-pack index or commit graph")


def bundle_pack(data: Buffer) -> int:
    """Where the pack of a bundle begins (gitformat-bundle, v2 and v3)."""
    head = data[: 16 << 20]
    end = head.find(b"\n\n")
    if end < 0 or head[end + 2 : end + 6] != b"PACK":
        raise HostileInputError("a git bundle without a pack")
    return end + 2


def _packed_refs(data: bytes) -> Iterator[tuple[str, list[bytes]]]:
    ref, ids = "", []
    for line in data.splitlines():
        if line.startswith(b"^"):
            ids += hex_ids(line)
            continue
        if ids:
            yield ref, ids
        ref, ids = line.partition(b" ")[2].decode("utf-8", "replace"), hex_ids(line[:64]) if line[:1] != b"#" else []
    if ids:
        yield ref, ids


def _how(path: bytes) -> str:
    for part in (b"logs", b"refs", b"rebase-merge", b"rebase-apply", b"sequencer", b"lost-found"):
        if part in path.split(b"/")[:-1]:
            return {b"logs": "reflog", b"refs": "ref"}.get(part, part.decode())
    return path.rpartition(b"/")[2].decode()


def _index_is_sha1(data: bytes) -> bool:
    if _is_hash(data, 20):
        return True
    if not _is_hash(data, 32) and any(data[-20:]):  # index.skipHash leaves zeros
        raise HostileInputError("a damaged git index")
    return not _is_hash(data, 32)


def _is_hash(data: Buffer, id_bytes: int) -> bool:
    end = len(data) - id_bytes
    return end > 0 and digest_of_pieces(sha1() if id_bytes == 20 else hashlib.sha256(), data, end) == data[end:]


def _after_index_entry(data: bytes, at: int, flags_at: int, version: int) -> int:
    flags = int.from_bytes(data[at + flags_at : at + flags_at + 2], "big")
    name = at + flags_at + 2 + (2 if flags & 0x4000 and version >= 3 else 0)
    if version == 4:
        while data[name] & 0x80:
            name += 1
        name += 1
    end = data.find(b"\0", name)
    if end < 0:
        raise HostileInputError("a truncated git index")
    if version == 4:
        return end + 1
    return at + (end - at + 8) // 8 * 8


def _extension_ids(data: bytes, at: int, id_bytes: int) -> list[bytes]:
    """Trees of the cache-tree extension and blobs of resolve-undo: they survive a reset of the entries."""
    ids: list[bytes] = []
    while at + 8 <= len(data) - id_bytes:
        name, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "big")
        body = data[at + 8 : at + 8 + size]
        if name == b"TREE":
            ids += _tree_extension(body, id_bytes)
        elif name == b"REUC":
            ids += _undo_extension(body, id_bytes)
        at += 8 + size
    return ids


def _tree_extension(body: bytes, id_bytes: int) -> Iterator[bytes]:
    at = 0
    while at < len(body):
        path_end = body.find(b"\0", at)  # a path may hold line feeds
        end = body.find(b"\n", path_end)
        if path_end < 0 or end < 0:
            raise HostileInputError("a damaged cache-tree in a git index")
        at = end + 1
        if body[path_end + 1 : path_end + 2] != b"-":
            yield body[at : at + id_bytes]
            at += id_bytes


def _undo_extension(body: bytes, id_bytes: int) -> Iterator[bytes]:
    at = 0
    while at < len(body):
        modes: list[bytes] = []
        at = _after_zero(body, at)
        for _ in range(3):
            after = _after_zero(body, at)
            modes.append(body[at : after - 1])
            at = after
        for mode in modes:
            if mode != b"0":
                yield body[at : at + id_bytes]
                at += id_bytes


def _after_zero(body: bytes, at: int) -> int:
    end = body.find(b"\0", at)
    if end < 0:
        raise HostileInputError("a damaged resolve-undo in a git index")
    return end + 1


def _split(data: bytes, id_bytes: int) -> list[bytes]:
    return [data[at : at + id_bytes] for at in range(0, len(data), id_bytes)]
