"""Every figure that is measured: its group, what is to be reached, and what the published images have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Unit = Literal["bytes", "MB", "MB/s", "s", "ms", "%", "count"]


@dataclass(frozen=True)
class Goal:
    """A figure. `reach` is in `unit`: at most that, or at least where `higher` is better; None is a figure to know."""

    text: str
    unit: Unit
    reach: float | None = None
    published: str = ""
    higher: bool = False


RELEASE: Mapping[str, Goal] = {
    "added-bytes": Goal("software: compressed bytes added over its base", "bytes", 20_000, "16,886"),
    "runtime-bytes": Goal("runtime layer, compressed", "MB", 25, "140.5 MB"),
    "runtime-digests": Goal("runtime layer: distinct digests in all images", "count", 1, "one in each image"),
    "health": Goal("docker run to /health", "s", 1.5, "3.0 s"),
    "build-unchanged": Goal("unchanged build, the verb alone", "s", 3, "a full rebuild"),
    "build-unchanged-nox": Goal("unchanged build, whole nox command", "s", 3, "a full rebuild"),
    "publish-unchanged": Goal("unchanged publish, the verb alone", "s", 3, "a full rebuild"),
    "publish-unchanged-nox": Goal("unchanged publish, whole nox command", "s", 3, "a full rebuild"),
    "suite": Goal("software suite", "s", 60, "not recorded"),
    "suite-checks": Goal("software suite: checks", "count", 595, "not recorded", higher=True),
    "same-digests": Goal("images of other digest when built in another place", "count", 0, "all of them"),
    "fresh-machine": Goal("build publish verify, first time, install included", "s", 300, "11 min, builds alone"),
}

IMAGES: Mapping[str, Goal] = {
    "reset-pyromat": Goal("reset, PYroMat, after small edits", "ms", 20, "186-204 ms"),
    "reset-mri-nufft": Goal("reset, MRI-NUFFT, after small edits", "ms", 60, "460 MB workspace: 970-1,200 ms"),
    "reset-software": Goal("reset, software", "ms", 10, "not recorded"),
    "shell-true": Goal("shell `true`", "ms", 4, "6-8 ms"),
    "finish-unsolved": Goal("finish, PYroMat, unsolved", "ms", 450, "643 ms"),
    "finish-solved": Goal("finish, PYroMat, solved", "ms", 600, "865 ms"),
    "memory-idle": Goal("server memory, idle", "MB", 90, "not recorded"),
    "memory-growth": Goal("server memory, growth over 1,000 sessions", "%", 5, "not recorded"),
}

SCAN: Mapping[str, Goal] = {
    "scan-release": Goal("scan, unpacked bytes on one core: this release's layers", "MB/s", 250, higher=True),
    "scan-ordinary": Goal("scan, unpacked bytes on one core: ordinary files, 529 MB", "MB/s", 250, higher=True),
    "scan-529": Goal("scan of an image of 529 MB and 23,918 files", "s", 2.5, "syft 5.8 s"),
    "scan-memory": Goal("scan, peak memory of the process, any layer", "MB", 300),
    "strip-history": Goal("strip of 20,000 commits, 5,000 of them future", "s", 3),
    "rewrite-unchanged": Goal("rewriting one layer of five: digests unchanged", "count", 4, higher=True),
}

SIGSTORE: Mapping[str, Goal] = {
    "sign-rekor1": Goal("sign a statement, Rekor v1", "ms"),
    "verify-rekor1": Goal("verify a bundle, Rekor v1", "ms"),
    "sign-rekor2": Goal("sign a statement, Rekor v2", "ms"),
    "verify-rekor2": Goal("verify a bundle, Rekor v2", "ms"),
    "review-image": Goal("review of the evidence, an image", "s"),
    "review-32": Goal("review of a folder of 32 images, extrapolated", "s", 60),
}

GOALS: Mapping[str, Mapping[str, Goal]] = {
    "release": RELEASE,
    "images": IMAGES,
    "scan": SCAN,
    "sigstore": SIGSTORE,
}
