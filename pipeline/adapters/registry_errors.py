"""What a registry's refusal means: one of the pipeline's errors, or a temporary failure. Codes decide, never prose.

Error bodies: https://github.com/opencontainers/distribution-spec/blob/main/spec.md#error-codes
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pipeline.errors import AbsentError, AccessError, IntegrityError, PipelineError, ServiceError

TEMPORARY_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
MAX_ERROR_BYTES = 64 << 10
MAX_TEXT_CHARS = 200

_DENIED_CODES = frozenset({"UNAUTHORIZED", "DENIED"})
_CORRUPT_CODES = frozenset({"DIGEST_INVALID", "SIZE_INVALID"})
_SERVICE_REMEDY = "wait and run again; if it stays, look at the registry's own log or status page"


@dataclass(frozen=True)
class Refusal:
    """An answer that is not what was asked for. `code` and `message` are the registry's own, cleaned and bounded."""

    status: int
    code: str = ""
    message: str = ""

    @property
    def is_denied(self) -> bool:
        """Whether it is about who asks."""
        return self.status in (401, 403) or (400 <= self.status < 500 and self.code in _DENIED_CODES)

    def __str__(self) -> str:
        return " ".join(part for part in (str(self.status), self.code, self.message and f"({self.message})") if part)


def clean_text(text: str, secrets: Iterable[str] = ()) -> str:
    """Text from outside made fit for a terminal: no secrets, no control or format characters, bounded length."""
    for secret in secrets:
        text = text.replace(secret, "[removed]")
    plain = "".join(" " if unicodedata.category(character)[0] in "CZ" else character for character in text)
    short = " ".join(plain.split())
    return short if len(short) <= MAX_TEXT_CHARS else short[:MAX_TEXT_CHARS] + "…"


def load_refusal(status: int, body: bytes, secrets: Iterable[str] = ()) -> Refusal:
    """Read `errors[0]` of an error body, which may be anything."""
    entry = _first_error(body)
    code, message = entry.get("code"), entry.get("message")
    return Refusal(
        status,
        clean_text(code, secrets) if isinstance(code, str) else "",
        clean_text(message, secrets) if isinstance(message, str) else "",
    )


def make_error(refusal: Refusal, action: str, where: str) -> PipelineError:
    """The error for a refusal that is not about access (see `Authorizer.denial` for those)."""
    what = f"cannot {action}: the registry answered {refusal}"
    if refusal.code in _CORRUPT_CODES:
        return IntegrityError(
            what, where=where, remedy="the bytes changed on disk or on the way: build again, then retry"
        )
    if refusal.status == 404:
        return AbsentError(what, where=where, remedy="check the name, and that the stage before has published it")
    if refusal.status == 413:
        return ServiceError(
            what, where=where, remedy="the registry limits sizes: make the blob smaller or raise its limit"
        )
    if refusal.status in TEMPORARY_STATUSES:
        return ServiceError(what, where=where, remedy=_SERVICE_REMEDY)
    return ServiceError(
        what, where=where, remedy="the registry does not accept this request; repeating it will not help"
    )


def make_denial(refusal: Refusal, action: str, where: str, remedy: str) -> AccessError:
    """The error for a refusal that is about who asks."""
    return AccessError(f"cannot {action}: the registry answered {refusal}", where=where, remedy=remedy)


def _first_error(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
        entry = document["errors"][0]
    except (ValueError, RecursionError, LookupError, TypeError):
        return {}
    return entry if isinstance(entry, dict) else {}
