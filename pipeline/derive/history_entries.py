"""History entries of an image config without the secrets, fixtures and future commits that they name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipeline.model.oci import HistoryEntry

REPLACEMENT = "(a build step whose text named what must not be published)"
_SECRET = re.compile(
    r"""(?ix)
    (?:^|[\s'"{,;]) [a-z0-9_]*
      (?:token|secret|password|passwd|api_?key|access_?key|private_?key|credential)[a-z0-9_]* \s*[=:]\s* \S{4}
    | \b(?:ghp|gho|ghs|ghu|github_pat|glpat|xox[abp])[-_][A-Za-z0-9_-]{16,}
    | \bAKIA[0-9A-Z]{16}\b
    | \bsk-[A-Za-z0-9_-]{20,}
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY
    | https?://[^\s/@:]+:[^\s/@]+@
    """
)


@dataclass(frozen=True)
class CleanHistory:
    """The entries to write, and the indexes of those that were changed."""

    entries: tuple[HistoryEntry, ...]
    cleaned: tuple[int, ...]


def clean_history(entries: Sequence[HistoryEntry], names: Iterable[str] = (), ids: Iterable[str] = ()) -> CleanHistory:
    """Replace the text of every entry that has a secret, one of `names` (fixtures) or the first 12 digits of an id.

    Number and order of the entries stay, since they belong to the layers.
    """
    forbidden = [name for name in names if name] + [one[:12] for one in ids if len(one) >= 12]
    cleaned = tuple(index for index, entry in enumerate(entries) if _is_bad(entry, forbidden))
    kept = tuple(_replace(entry) if index in cleaned else entry for index, entry in enumerate(entries))
    return CleanHistory(kept, cleaned)


def names_a_secret(text: str) -> bool:
    """Whether a text looks as if it carried a credential."""
    return _SECRET.search(text) is not None


def _is_bad(entry: HistoryEntry, forbidden: Sequence[str]) -> bool:
    text = f"{entry.created_by or ''}\n{entry.comment or ''}"
    return names_a_secret(text) or any(name in text for name in forbidden)


def _replace(entry: HistoryEntry) -> HistoryEntry:
    return entry.model_copy(update={"created_by": REPLACEMENT, "comment": None})
