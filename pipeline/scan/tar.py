"""A tar walk over a stream that keeps every header byte: names and metadata for the scan, raw blocks for the rewrite.

Formats: POSIX ustar and pax (IEEE 1003.1, pax, "ustar Interchange Format"), GNU long names and GNU sparse headers
(GNU tar manual, "Basic Tar Format"). Types without content ignore their size field, as Go's archive/tar does.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from pipeline.errors import HostileInputError
from pipeline.scan.limits import Limits
from pipeline.scan.stream import Reader

BLOCK = 512
ZERO = bytes(BLOCK)
INSIDE = b"//"  # between an archive and a member of it; no normal path has it
_WITHOUT_CONTENT = b"123456"
_FILES = b"0\x007"


@dataclass
class Member:
    """One entry. `path` is normal: no leading slash, no dot parts. `header` holds every block before the content.

    `header_at` is where the entry's own block stands in it; `shared_header` is the part of it that counts for later
    entries too (pax global headers).
    """

    path: bytes
    kind: str
    mode: int
    uid: int
    gid: int
    size: int
    link: bytes
    header: bytes
    header_at: int = 0
    shared_header: bytes = b""
    pax: dict[bytes, bytes] = field(default_factory=dict)
    sparse: bool = False

    @property
    def padding(self) -> int:
        """Zero bytes after the content, up to the next block."""
        return -self.size % BLOCK


def walk(reader: Reader, limits: Limits) -> Iterator[Member]:
    """Members in order. The caller reads content from `reader`; what it leaves unread is passed over.

    HostileInputError for a header that is not one, a truncated stream, or a path with `..`.
    """
    shared: dict[bytes, bytes] = {}
    count = 0
    while True:
        member = _next_member(reader, limits, shared)
        if member is None:
            return
        count += 1
        if count > limits.entries:
            raise HostileInputError(f"more than {limits.entries} entries")
        end = reader.offset + member.size + member.padding
        yield member
        if reader.offset > end:
            raise HostileInputError("content was read past its end", where=display(member.path))
        reader.skip(end - reader.offset)


def is_header(block: bytes) -> bool:
    """Whether 512 bytes are a tar header with a right checksum: v7 archives have no other mark."""
    try:
        _check_sum(block, BLOCK)
    except HostileInputError:
        return False
    return block != ZERO


def trailing(reader: Reader) -> int:
    """Read to the end; how many bytes after the end of the archive are not zero."""
    return sum(len(chunk) - chunk.count(0) for chunk in reader.rest())


def display(path: bytes) -> str:
    """A path as text that is reversible and safe in JSON and on terminals: `\\xNN` for what is not printable UTF-8."""
    text = path.decode("utf-8", "surrogateescape")
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(_display_character(character) for character in text)


def undisplay(text: str) -> bytes:
    """The bytes that `display` showed."""
    if "\\" not in text:
        return text.encode()
    out, parts = bytearray(), iter(range(len(text)))
    for at in parts:
        if text[at] != "\\":
            out += text[at].encode()
        elif text[at + 1] == "\\":
            out += b"\\"
            next(parts)
        else:
            out.append(int(text[at + 2 : at + 4], 16))
            for _ in range(3):
                next(parts)
    return bytes(out)


def normal(path: bytes, where: str = "") -> bytes:
    """Without leading slash, trailing slash and dot parts; the root is empty. HostileInputError for `..`."""
    if b"//" not in path and not path.startswith((b"/", b".")) and b"/." not in path:
        return path.rstrip(b"/")
    parts = [part for part in path.split(b"/") if part not in (b"", b".")]
    if b".." in parts:
        raise HostileInputError("a path leaves the root", where=where or display(path))
    return b"/".join(parts)


def _display_character(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if character.isprintable():
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def _next_member(reader: Reader, limits: Limits, shared: dict[bytes, bytes]) -> Member | None:
    raw, shared_raw, own = b"", b"", dict(shared)
    while True:
        block = reader.take_up_to(BLOCK)
        if not block and not raw:
            return None  # an archive without end blocks: some writers leave them out
        if len(block) != BLOCK:
            raise HostileInputError(f"truncated header at offset {reader.offset}")
        if block == ZERO:
            if raw:
                raise HostileInputError("an extended header without its entry")
            return None
        _check_sum(block, reader.offset)
        raw += block
        kind, size = block[156:157], _number(block[124:136])
        if kind not in b"xgLKX" or kind == b"":
            member = _member(reader, block, raw, own)
            member.header_at, member.shared_header = len(raw) - BLOCK, shared_raw
            return member
        if size > limits.header_bytes or len(raw) > 2 * limits.header_bytes:
            raise HostileInputError(f"an extended header of {size} bytes")
        data = reader.take(size + -size % BLOCK)
        raw += data
        if kind == b"g":
            shared_raw += block + data
        _extend(kind, data[:size], own, shared)


def _extend(kind: bytes, data: bytes, own: dict[bytes, bytes], shared: dict[bytes, bytes]) -> None:
    if kind == b"L":
        own[b"path"] = data.partition(b"\0")[0]
    elif kind == b"K":
        own[b"linkpath"] = data.partition(b"\0")[0]
    else:
        records = _pax_records(data)
        own.update(records)
        if kind == b"g":
            shared.update(records)


def _member(reader: Reader, block: bytes, raw: bytes, pax: dict[bytes, bytes]) -> Member:
    kind = block[156:157]
    name = block[:100].partition(b"\0")[0]
    if block[257:263] == b"ustar\0" and (prefix := block[345:500].partition(b"\0")[0]):
        name = prefix + b"/" + name
    path = pax.get(b"GNU.sparse.name", pax.get(b"path", name))
    if kind in _FILES and path.endswith(b"/"):
        kind = b"5"  # a v7 archive marks folders by a slash
    if kind == b"S":
        raw = _sparse_blocks(reader, block, raw)
    return Member(
        path=normal(path),
        kind="file" if kind in _FILES or kind == b"S" else kind.decode("latin-1"),
        mode=_number(block[100:108]) & 0o7777,
        uid=_pax_number(pax, b"uid", block[108:116]),
        gid=_pax_number(pax, b"gid", block[116:124]),
        size=0 if kind in _WITHOUT_CONTENT else _pax_number(pax, b"size", block[124:136]),
        link=pax.get(b"linkpath", block[157:257].partition(b"\0")[0]),
        header=raw,
        pax=pax,
        sparse=kind == b"S" or any(key.startswith(b"GNU.sparse") for key in pax),
    )


def _sparse_blocks(reader: Reader, block: bytes, raw: bytes) -> bytes:
    more = block[482]
    while more:
        extension = reader.take(BLOCK)
        raw += extension
        more = extension[504]
        if len(raw) > 64 << 20:
            raise HostileInputError("a sparse map without end")
    return raw


def _check_sum(block: bytes, offset: int) -> None:
    stored = _number(block[148:156])
    unsigned = _sum(block[:148]) + _sum(block[156:404]) + _sum(block[404:]) + 256
    if stored == unsigned:
        return
    high = sum(byte > 127 for byte in block[:148] + block[156:])  # some old writers added signed bytes
    if stored != unsigned - 256 * high:
        raise HostileInputError(f"not a tar header at offset {offset - BLOCK}")


def _sum(octets: bytes) -> int:
    """Of at most 256 bytes. Adler-32 keeps it in its low half, plus one and modulo 65521 (RFC 1950): far faster."""
    return (zlib.adler32(octets) & 0xFFFF) - 1


@lru_cache(4096)
def _number(octets: bytes) -> int:
    if octets[0] & 0x80:  # base-256, GNU; a negative one is never sane here
        value = int.from_bytes(octets[1:], "big") | (octets[0] & 0x7F) << 8 * (len(octets) - 1)
        if octets[0] & 0x40 or value > 1 << 62:
            raise HostileInputError("a tar number out of range")
        return value
    text = octets.partition(b"\0")[0].strip()
    if text.strip(b"01234567"):  # Python's int() would take a sign, a prefix and underscores, which no runtime does
        raise HostileInputError(f"a tar number that is not octal: {octets!r}")
    return int(text or b"0", 8)


def _pax_number(pax: dict[bytes, bytes], key: bytes, octets: bytes) -> int:
    if key not in pax:
        return _number(octets)
    if not pax[key].isdigit() or len(pax[key]) > 18:
        raise HostileInputError(f"a pax {key.decode()} that is not a number")
    return int(pax[key])


def _pax_records(data: bytes) -> dict[bytes, bytes]:
    records: dict[bytes, bytes] = {}
    at = 0
    while at < len(data) and data[at] != 0:
        space = data.find(b" ", at, at + 12)
        length = int(data[at:space]) if space > at and data[at:space].isdigit() else 0
        record = data[space + 1 : at + length]
        if length < 5 or at + length > len(data) or not record.endswith(b"\n") or b"=" not in record:
            raise HostileInputError("a damaged pax header")
        key, _, value = record[:-1].partition(b"=")
        records[key] = value
        at += length
    return records
