"""Digests: `sha256:<64 hex>`, of compressed bytes (digest) or uncompressed bytes (diff_id)."""

from __future__ import annotations

import hashlib
import re
from typing import Annotated

from pydantic import StringConstraints

DIGEST_PATTERN = r"^sha256:[0-9a-f]{64}$"
Digest = Annotated[str, StringConstraints(pattern=DIGEST_PATTERN)]

_DIGEST = re.compile(DIGEST_PATTERN)


def digest_of(data: bytes) -> str:
    """SHA-256 digest of bytes in OCI form."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def is_digest(text: str) -> bool:
    """Whether text is an OCI SHA-256 digest, lower case and complete."""
    return _DIGEST.match(text) is not None and "\n" not in text


def hex_of(digest: str) -> str:
    """The hex part of a digest."""
    return digest.partition(":")[2]
