"""Where everything lies: local state under one ignored folder, evidence and SBOMs in the repository."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

STATE_FOLDER = ".pipeline"


@dataclass(frozen=True)
class Paths:
    """The folders of one release on one target. Nothing here touches the disk."""

    root: Path
    release: str
    target: str

    @property
    def state(self) -> Path:
        """Local state, ignored by git, mode 0700."""
        return self.root / STATE_FOLDER

    @property
    def services(self) -> Path:
        """Of the local target's engine, registry and Sigstore."""
        return self.state / "services"

    @property
    def cache(self) -> Path:
        """Downloads by digest, unpacked roots, scan results by layer digest: safe to delete."""
        return self.state / "cache"

    @property
    def lock(self) -> Path:
        """Held by the one run at work."""
        return self.state / "lock"

    def base(self, image: str) -> Path:
        """The layout of an image's base."""
        return self._of_stage("bases", image)

    def built(self, image: str) -> Path:
        """What build leaves."""
        return self._of_stage("build", image)

    def published(self, image: str) -> Path:
        """What publish leaves: its record and its journal of signed bundles."""
        return self._of_stage("publish", image)

    @property
    def published_release(self) -> Path:
        """The journal of signed release manifests; no image id has a dot."""
        return self._of_stage("publish", "release.manifest")

    def pulled(self, image: str) -> Path:
        """The empty store that verify pulls into."""
        return self._of_stage("verify", image)

    @property
    def evidence(self) -> Path:
        """What a reviewer reads; committed by the release manager."""
        return self.root / "evidence" / self.release / self.target

    @property
    def sbom(self) -> Path:
        """SBOMs of the release, one an image."""
        return self.root / "sbom" / self.release / self.target

    @property
    def durations(self) -> Path:
        """How long things took: kept apart from evidence, which is byte-identical when regenerated."""
        return self.state / "durations" / self.release / self.target

    def _of_stage(self, stage: str, image: str) -> Path:
        return self.state / stage / self.release / self.target / image
