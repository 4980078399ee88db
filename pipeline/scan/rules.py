"""What is allowed and what is not, as data: git history by topology, fixtures by content and by path."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import translate
from functools import cached_property
from typing import Literal

from pydantic import JsonValue

from pipeline.model.digest import digest_of
from pipeline.model.record import canonical_json
from pipeline.scan.fingerprint import Fingerprint, Matcher
from pipeline.scan.objects import Format

SCANNER = "pipeline-scan/3"


@dataclass(frozen=True)
class Rules:
    """A git object is allowed when a base commit reaches it; ids are hex.

    Without base commits each repository's own HEAD is its base. `future_objects` are known from the source history and
    count wherever they are named. `unrelated` says what a repository is that shares nothing with a base: submodules
    are allowed by the base's own tree, other vendored ones by more `base_commits` or by "allow". `ancestor_tags` allows
    an annotated tag whose target is allowed. `path_patterns` are shell patterns for whole paths, without leading slash.
    """

    base_commits: tuple[str, ...] = ()
    future_objects: frozenset[str] = frozenset()
    unrelated: Literal["refuse", "allow"] = "refuse"
    ancestor_tags: bool = True
    fingerprints: tuple[Fingerprint, ...] = field(default=(), repr=False)
    path_patterns: tuple[str, ...] = ()

    @property
    def blob_format(self) -> Format:
        """How plain files are named to compare them with blobs: as the base commits are."""
        return "sha256" if any(len(commit) == 64 for commit in self.base_commits) else "sha1"

    @cached_property
    def matcher(self) -> Matcher:
        """Of the fingerprints."""
        return Matcher(self.fingerprints)

    @cached_property
    def path_pattern(self) -> re.Pattern[str] | None:
        """All path patterns in one, or None."""
        return re.compile("|".join(map(translate, self.path_patterns))) if self.path_patterns else None

    @cached_property
    def layer_digest(self) -> str:
        """Of everything that a layer's scan depends on; the base commits are judged later, over all layers."""
        return digest_of(canonical_json(self._layer_part()))

    @cached_property
    def digest(self) -> str:
        """Of all rules. Fixtures enter it by digest, never by content."""
        return digest_of(
            canonical_json(
                {
                    "base_commits": sorted(self.base_commits),
                    "future_objects": sorted(self.future_objects),
                    "unrelated": self.unrelated,
                    "ancestor_tags": self.ancestor_tags,
                    "layer": self._layer_part(),
                }
            )
        )

    def _layer_part(self) -> dict[str, JsonValue]:
        prints: list[JsonValue] = [
            [one.label, one.kind, one.sha256, one.normal_sha256, digest_of(b"\n".join(one.lines))]
            for one in sorted(self.fingerprints, key=lambda one: (one.label, one.sha256))
        ]
        patterns: list[JsonValue] = [*sorted(self.path_patterns)]
        return {"scanner": SCANNER, "blob_format": self.blob_format, "fingerprints": prints, "path_patterns": patterns}
