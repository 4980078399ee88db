"""How much a scan reads before it says "this is hostile" instead of going on. Sizes in bytes."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeline.errors import HostileInputError


@dataclass(frozen=True)
class Limits:
    """Ceilings of one layer. What breaks one is a finding, never silence.

    `delta_bytes` is for one object in a delta chain, `resolved_bytes` for what all deltas of one pack make: a small
    pack of deltas over one large object can ask for days of work.
    """

    layer_bytes: int = 32 << 30
    entries: int = 4_000_000
    header_bytes: int = 1 << 20
    memory_bytes: int = 8 << 20
    archive_depth: int = 3
    archive_bytes: int = 4 << 30
    archive_members: int = 1_000_000
    archive_ratio: int = 200
    ratio_free_bytes: int = 64 << 20
    objects: int = 1_000_000
    delta_bytes: int = 64 << 20
    resolved_bytes: int = 64 << 30


@dataclass
class Budget:
    """What nested archives of one layer have used so far, in all."""

    limits: Limits
    archive_bytes: int = field(default=0)
    members: int = field(default=0)

    def spend(self, unpacked: int, packed_total: int, own_total: int) -> None:
        """Count `unpacked` more bytes; HostileInputError for a bomb (`own_total` of `packed_total`) or the ceiling."""
        self.archive_bytes += unpacked
        if self.archive_bytes > self.limits.archive_bytes:
            raise HostileInputError(f"nested archives unpack to more than {self.limits.archive_bytes} bytes")
        ratio = own_total // max(packed_total, 1)
        if own_total > self.limits.ratio_free_bytes and ratio > self.limits.archive_ratio:
            raise HostileInputError(f"archive unpacks to {ratio} times its size")

    def member(self) -> None:
        """Count one member; HostileInputError past the ceiling."""
        self.members += 1
        if self.members > self.limits.archive_members:
            raise HostileInputError(f"more than {self.limits.archive_members} members in nested archives")
