"""Downloaded files by SHA-256: written atomically, hashed again at every read, never fetched twice."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import IntegrityError
from pipeline.files import PARTIAL_PREFIX, remove_tree, write_atomic_chunks


@dataclass(frozen=True)
class FileCache:
    """A folder of files named by their SHA-256 (hex)."""

    path: Path

    def file_path(self, sha256: str) -> Path:
        """Where the file is, or would be."""
        return self.path / sha256

    def has(self, sha256: str) -> bool:
        """Whether the file is here with the right content; a damaged one is removed and counts as absent."""
        path = self.file_path(sha256)
        if not path.is_file():
            return False
        if sha256_of(path) == sha256:
            return True
        path.unlink()
        return False

    def read(self, sha256: str) -> bytes:
        """The content; IntegrityError when it is absent or damaged."""
        path = self.file_path(sha256)
        data = path.read_bytes() if path.is_file() else b""
        if hashlib.sha256(data).hexdigest() != sha256:
            raise IntegrityError(
                "a cached file is absent or damaged", where=str(path), remedy="remove it and build again"
            )
        return data

    def scratch(self) -> tempfile.TemporaryDirectory[str]:
        """A folder for work, on the same file system; a killed run leaves it to `remove_leftovers`."""
        self.path.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(dir=self.path, prefix=PARTIAL_PREFIX)

    def remove_leftovers(self) -> None:
        """Remove what killed runs left. Call it when no other run uses the cache."""
        for path in self.path.glob(f"{PARTIAL_PREFIX}*") if self.path.is_dir() else ():
            remove_tree(path) if path.is_dir() else path.unlink()

    def add(self, source_path: Path, sha256: str) -> None:
        """Move a downloaded file in; IntegrityError (and nothing kept) when it is not the expected one."""
        actual = sha256_of(source_path)
        if actual != sha256:
            raise IntegrityError(
                f"downloaded file has sha256 {actual}, expected {sha256}",
                where=source_path.name,
                remedy="the package source served other bytes than the lock names; check the source, then the lock",
            )
        with source_path.open("rb") as stream:
            write_atomic_chunks(self.file_path(sha256), iter(lambda: stream.read(1 << 20), b""))


def sha256_of(path: Path) -> str:
    """Hex SHA-256 of a file, streamed."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
