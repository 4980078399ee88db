"""Every error that a person can see: what happened, where, what to do, and the exit code of the process.

Only `pipeline.__main__` exits. Everything below it raises one of these, or lets a programming error pass through.
"""

from __future__ import annotations


class PipelineError(Exception):
    """The base of all expected failures. `str()` of it is one line a part: what, where, remedy."""

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        lines = [self.what]
        if self.where:
            lines.append(f"  where: {self.where}")
        if self.remedy:
            lines.append(f"  remedy: {self.remedy}")
        return "\n".join(lines)


class ConfigError(PipelineError):
    """A file that a person wrote (release, image, policy, lock) is not acceptable. `where` is file:line."""

    exit_code = 2


class StageError(PipelineError):
    """A record of the stage before is missing, stale, damaged or belongs to something else."""

    exit_code = 3


class AbsentError(StageError):
    """A registry does not have the manifest, tag or blob that is asked for."""


class LockedError(PipelineError):
    """Another process of the pipeline holds the lock; `where` names it."""

    exit_code = 4


class ServiceError(PipelineError):
    """An engine, registry, log or package source is absent, down or refuses for a reason that may pass."""

    exit_code = 5


class AccessError(PipelineError):
    """Credentials are missing, wrong or not allowed to do this. Never retried."""

    exit_code = 6


class IntegrityError(PipelineError):
    """Bytes are not what their digest, signature or record says."""

    exit_code = 7


class HostileInputError(IntegrityError):
    """Input from outside breaks a limit on size, depth, count or time, or is malformed."""


class VerificationError(PipelineError):
    """Checks, policies or signatures failed; the findings are in the evidence."""

    exit_code = 8


class StorageError(PipelineError):
    """The disk is full or refuses to write; nothing half-written was left."""

    exit_code = 9


class UsageError(PipelineError):
    """The command line asks for something that does not exist."""

    exit_code = 64
