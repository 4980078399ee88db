"""An append-only Merkle log (RFC 6962, section 2) in a file, with checkpoints and tiles (C2SP tlog-checkpoint, -tiles).

The file holds one base64 line an entry and is flushed to the disk before anybody gets a proof. A last line without its
newline was never acknowledged (the machine stopped while it was written) and is dropped at the next start.
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import hashlib
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pipeline.errors import IntegrityError, LockedError, StorageError

TILE_WIDTH = 256
TILE_HEIGHT = 8
EMPTY_ROOT = hashlib.sha256(b"").digest()


@dataclass(frozen=True)
class Signature:
    """How a log signs its checkpoints: origin line, name on the signature line, key hint of four bytes, and the key."""

    origin: str
    name: str
    hint: bytes
    sign: Callable[[bytes], bytes]


@dataclass(frozen=True)
class Inclusion:
    """Proof that a leaf is in the tree of `size` leaves."""

    index: int
    size: int
    root: bytes
    hashes: tuple[bytes, ...]
    checkpoint: str


class Tree:
    """The hashes. `_levels[k][i]` is full subtree i of 2**k leaves, so that an append costs O(log n)."""

    def __init__(self) -> None:
        self._levels: list[list[bytes]] = [[]]

    @property
    def size(self) -> int:
        """Number of leaves."""
        return len(self._levels[0])

    def append(self, body: bytes) -> None:
        """Add a leaf."""
        level, node = 0, hash_leaf(body)
        self._levels[0].append(node)
        while len(self._levels[level]) % 2 == 0:
            node = hash_children(*self._levels[level][-2:])
            level += 1
            if level == len(self._levels):
                self._levels.append([])
            self._levels[level].append(node)

    def root(self, size: int | None = None) -> bytes:
        """Root of the first `size` leaves; of all of them when it is None."""
        count = self.size if size is None else size
        return self._range(0, count) if count else EMPTY_ROOT

    def path(self, index: int, size: int) -> tuple[bytes, ...]:
        """Audit path of a leaf in the tree of `size` leaves, lowest first."""
        return self._path(index, 0, size)

    def tile(self, level: int, index: int, width: int) -> bytes | None:
        """`width` hashes of a tile (C2SP tlog-tiles), or None where the log has not grown that far."""
        depth = level * TILE_HEIGHT
        row = self._levels[depth] if depth < len(self._levels) else []
        hashes = row[index * TILE_WIDTH : index * TILE_WIDTH + width]
        return b"".join(hashes) if len(hashes) == width else None

    def _range(self, start: int, count: int) -> bytes:
        if count & (count - 1) == 0 and start % count == 0:
            return self._levels[count.bit_length() - 1][start // count]
        left = _split(count)
        return hash_children(self._range(start, left), self._range(start + left, count - left))

    def _path(self, index: int, start: int, count: int) -> tuple[bytes, ...]:
        if count == 1:
            return ()
        left = _split(count)
        if index < left:
            return (*self._path(index, start, left), self._range(start + left, count - left))
        return (*self._path(index - left, start + left, count - left), self._range(start, left))


class Log:
    """A tree with its entries in a file that one process owns. All methods may be called from several threads."""

    def __init__(self, path: Path, signature: Signature) -> None:
        self._signature = signature
        self._lock = threading.Lock()
        self.tree = Tree()
        self._bodies: list[bytes] = []
        self._file = _open_owned(path)
        self._length = self._recover(path)

    @property
    def size(self) -> int:
        """Number of entries."""
        return len(self._bodies)

    def append(self, body: bytes) -> Inclusion:
        """Store an entry durably and prove it; StorageError leaves the log as it was."""
        with self._lock:
            self._store(base64.b64encode(body) + b"\n")
            self._add(body)
            index, size = self.tree.size - 1, self.tree.size
            return Inclusion(index, size, self.tree.root(), self.tree.path(index, size), self._checkpoint())

    def checkpoint(self) -> str:
        """The signed note of the tree as it is now."""
        with self._lock:
            return self._checkpoint()

    def tile(self, level: int, index: int, width: int) -> bytes | None:
        """See Tree.tile."""
        with self._lock:
            return self.tree.tile(level, index, width)

    def bundle(self, index: int, width: int) -> bytes | None:
        """`width` entries of a tile, each behind its length of two bytes, or None where the log is shorter."""
        with self._lock:
            bodies = self._bodies[index * TILE_WIDTH : index * TILE_WIDTH + width]
        if len(bodies) != width:
            return None
        return b"".join(len(body).to_bytes(2, "big") + body for body in bodies)

    def close(self) -> None:
        """Give the file up."""
        self._file.close()

    def _checkpoint(self) -> str:
        root = base64.b64encode(self.tree.root()).decode()
        note = f"{self._signature.origin}\n{self.tree.size}\n{root}\n"
        signed = base64.b64encode(self._signature.hint + self._signature.sign(note.encode())).decode()
        return f"{note}\n\u2014 {self._signature.name} {signed}\n"

    def _add(self, body: bytes) -> None:
        self._bodies.append(body)
        self.tree.append(body)

    def _store(self, line: bytes) -> None:
        try:
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            os.ftruncate(self._file.fileno(), self._length)
            raise StorageError("the log cannot be written", where=str(self._file.name), remedy="free space") from error
        self._length += len(line)

    def _recover(self, path: Path) -> int:
        data = path.read_bytes()
        length = data.rfind(b"\n") + 1
        if length != len(data):
            os.ftruncate(self._file.fileno(), length)
            os.fsync(self._file.fileno())
        for number, line in enumerate(data[:length].splitlines(), 1):
            try:
                self._add(base64.b64decode(line, validate=True))
            except binascii.Error:
                raise IntegrityError(
                    "a line of the log is not base64",
                    where=f"{path}:{number}",
                    remedy="remove the state folder of the private Sigstore; what it signed can no longer be verified",
                ) from None
        return length


def hash_leaf(body: bytes) -> bytes:
    """RFC 6962, section 2.1."""
    return hashlib.sha256(b"\0" + body).digest()


def hash_children(left: bytes, right: bytes) -> bytes:
    """RFC 6962, section 2.1."""
    return hashlib.sha256(b"\1" + left + right).digest()


def _split(count: int) -> int:
    """The largest power of two below count."""
    return 1 << ((count - 1).bit_length() - 1)


def _open_owned(path: Path) -> BinaryIO:
    # Unbuffered, so that bytes of a failed write cannot come out with the next one.
    file = open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "ab", buffering=0)  # noqa: PTH123, SIM115
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise LockedError(
            "another private Sigstore serves this state", where=str(path), remedy="stop it (nox -s down)"
        ) from None
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    return file
