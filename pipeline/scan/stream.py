"""The bytes of a layer, once, in order: hashed as they arrive, inflated, hashed again, handed out by count.

Compression is recognised by its first bytes, as container runtimes do, whatever the media type says. gzip may have
several members (RFC 1952, section 2.2), zstd several frames (RFC 8878, section 3.1).
"""

from __future__ import annotations

import hashlib
import queue
import threading
import zlib
from collections.abc import Iterator
from typing import IO, BinaryIO, cast

import zstandard
from isal import isal_zlib

from pipeline.errors import HostileInputError

CHUNK_BYTES = 1 << 18
GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = tuple(bytes([low]) + b"\x2a\x4d\x18" for low in range(0x50, 0x60))
_DONE = object()
_ISAL_ERROR = cast(type[Exception], isal_zlib.error)  # its stubs declare an instance


class Reader:
    """Takes chunks, gives exact counts. `offset` counts what was given out or skipped."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._chunk, self._at = b"", 0
        self.offset = 0

    def take(self, count: int) -> bytes:
        """Exactly `count` bytes; HostileInputError when the stream ends before."""
        data = self.take_up_to(count)
        if len(data) != count:
            raise HostileInputError(f"truncated: {len(data)} of {count} bytes at offset {self.offset - len(data)}")
        return data

    def take_up_to(self, count: int) -> bytes:
        """`count` bytes, or fewer at the end of the stream."""
        end = self._at + count
        if end <= len(self._chunk):
            data = self._chunk[self._at : end]
            self._at = end
            self.offset += count
            return data
        data = b"".join(self._pieces(count))
        self.offset += len(data)
        return data

    def pieces(self, count: int) -> Iterator[bytes]:
        """Exactly `count` bytes in pieces as they come, without joining them."""
        done = 0
        for piece in self._pieces(count):
            done += len(piece)
            self.offset += len(piece)
            yield piece
        if done != count:
            raise HostileInputError(f"truncated: {done} of {count} bytes before offset {self.offset}")

    def skip(self, count: int) -> None:
        """Pass over exactly `count` bytes."""
        for _ in self.pieces(count):
            pass

    def rest(self) -> Iterator[bytes]:
        """Everything that is left."""
        yield from self._pieces(1 << 62)

    def _pieces(self, count: int) -> Iterator[bytes]:
        while count > 0:
            if self._at >= len(self._chunk):
                following = next(self._chunks, None)
                if following is None:
                    return
                self._chunk, self._at = following, 0
            piece = self._chunk[self._at : self._at + count]
            self._at += len(piece)
            count -= len(piece)
            if piece:
                yield piece


class LayerStream:
    """A layer's unpacked bytes as an iterator, with the digests of both sides once it is exhausted."""

    def __init__(self, stream: BinaryIO, limit_bytes: int) -> None:
        self._stream, self._limit = stream, limit_bytes
        self._packed, self._plain = hashlib.sha256(), hashlib.sha256()
        self.packed_bytes = self.plain_bytes = 0

    @property
    def digest(self) -> str:
        """Of the compressed bytes read so far."""
        return "sha256:" + self._packed.hexdigest()

    @property
    def diff_id(self) -> str:
        """Of the unpacked bytes given so far."""
        return "sha256:" + self._plain.hexdigest()

    def chunks(self) -> Iterator[bytes]:
        """Unpacked bytes; HostileInputError for damaged compression or more than the limit."""
        for chunk in inflate(self._compressed()):
            self._plain.update(chunk)
            self.plain_bytes += len(chunk)
            if self.plain_bytes > self._limit:
                raise HostileInputError(f"layer unpacks to more than {self._limit} bytes")
            yield chunk

    def _compressed(self) -> Iterator[bytes]:
        while chunk := self._stream.read(CHUNK_BYTES):
            self._packed.update(chunk)
            self.packed_bytes += len(chunk)
            yield chunk


def inflate(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Plain bytes of gzip, zstd or plain chunks; each piece is at most about 4 MiB, so a bomb is seen in time."""
    head = b""
    for chunk in chunks:
        head += chunk
        if len(head) >= 4:
            break
    if head.startswith(GZIP_MAGIC):
        yield from _inflate_gzip(_after(head, chunks))
    elif head.startswith((ZSTD_MAGIC, *_SKIPPABLE)):
        yield from _inflate_zstd(_after(head, chunks))
    else:
        yield from _after(head, chunks)


def _after(head: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    if head:
        yield head
    yield from chunks


def _inflate_gzip(chunks: Iterator[bytes]) -> Iterator[bytes]:
    member = isal_zlib.decompressobj(wbits=31)
    fresh = True  # nothing of this member was fed yet
    for chunk in chunks:
        data = chunk
        while data:
            if fresh and not data.strip(b"\0"):
                break  # gzip(1) pads to a block with zeros
            try:
                plain = member.decompress(data, 4 * CHUNK_BYTES)
            except (_ISAL_ERROR, zlib.error, ValueError, EOFError) as error:
                raise HostileInputError(f"damaged gzip data: {error}") from error
            fresh = False
            if plain:
                yield plain
            if member.eof:
                data, member, fresh = member.unused_data, isal_zlib.decompressobj(wbits=31), True
            else:
                data = member.unconsumed_tail
                if not data and not plain:
                    break
    if not fresh:
        yield from _gzip_end(member)


def _gzip_end(member: object) -> Iterator[bytes]:
    flush = getattr(member, "flush")  # noqa: B009  (isal's stubs do not declare it)
    try:
        tail = flush()
    except (_ISAL_ERROR, zlib.error, ValueError, EOFError) as error:
        raise HostileInputError("truncated gzip data") from error
    if tail:
        yield tail
    if not getattr(member, "eof"):  # noqa: B009
        raise HostileInputError("truncated gzip data")


def _inflate_zstd(chunks: Iterator[bytes]) -> Iterator[bytes]:
    source = _Readable(chunks)
    inflater = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    reader = inflater.stream_reader(cast(IO[bytes], source), read_across_frames=True)
    try:
        while plain := reader.read(2 * CHUNK_BYTES):
            yield plain
    except zstandard.ZstdError as error:
        raise HostileInputError(f"damaged zstd data: {error}") from error


class _Readable:
    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._reader = Reader(chunks)

    def read(self, count: int = CHUNK_BYTES) -> bytes:
        return self._reader.take_up_to(count)


def ahead(chunks: Iterator[bytes], depth: int = 4) -> Iterator[bytes]:
    """The same chunks, made in a second thread: inflating and hashing release the interpreter's lock."""
    waiting: queue.Queue[object] = queue.Queue(depth)
    stop = threading.Event()
    thread = threading.Thread(target=_produce, args=(chunks, waiting, stop), daemon=True)
    thread.start()
    try:
        while (item := waiting.get()) is not _DONE:
            if isinstance(item, BaseException):
                raise item
            if isinstance(item, bytes):
                yield item
    finally:
        stop.set()
        while thread.is_alive():
            _drain(waiting)
            thread.join(0.01)


def _produce(chunks: Iterator[bytes], waiting: queue.Queue[object], stop: threading.Event) -> None:
    last: object = _DONE
    try:
        for chunk in chunks:
            waiting.put(chunk)
            if stop.is_set():
                return
    except BaseException as error:  # noqa: BLE001  (raised again in the consumer)
        last = error
    waiting.put(last)


def _drain(waiting: queue.Queue[object]) -> None:
    while not waiting.empty():
        waiting.get_nowait()
