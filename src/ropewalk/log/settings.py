"""What a topic may decide about its logs."""

from typing import Final

from msgspec import Struct

UNLIMITED: Final = -1
"""As a retention: nothing is ever too old, or too much."""

LAG_UNLIMITED_MS: Final = 2**63 - 1
"""Kafka's way of writing that a record may escape compaction for ever."""

_DAY_MS: Final = 24 * 60 * 60 * 1000


class LogSettings(Struct, frozen=True, gc=False, kw_only=True):
    """Kafka's topic settings of the same names, and their defaults."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * _DAY_MS
    retention_bytes: int = UNLIMITED
    retention_ms: int = 7 * _DAY_MS
    index_interval_bytes: int = 4096
    compacts: bool = False
    """Whether `cleanup.policy` names `compact`."""

    delete_retention_ms: int = _DAY_MS
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LAG_UNLIMITED_MS
    min_cleanable_dirty_ratio: float = 0.5
    producer_expiry_ms: int = _DAY_MS
    rewrites_tail: bool = True
    """Whether opening a log that was not closed writes again what it finds above the recovery point. Needed where
    acknowledged means on disk; without that promise the tail may be gigabytes, and is left alone."""
    snapshot_interval_bytes: int = 1 << 26
    """At most about so many bytes of headers are replayed after a crash to know the producers again."""
