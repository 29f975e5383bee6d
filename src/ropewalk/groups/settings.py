"""What an administrator may decide about groups; the defaults are Kafka's."""

from msgspec import Struct


class GroupSettings(Struct, frozen=True):
    session_ms_min: int = 6_000
    session_ms_max: int = 30 * 60 * 1000
    initial_rebalance_delay_ms: int = 3_000
    """How long the first members of an empty group wait for others; each further one makes it longer."""
    member_count_max: int = 2**31 - 1
    offsets_retention_ms: int = 7 * 24 * 60 * 60 * 1000
    offsets_check_interval_ms: int = 10 * 60 * 1000
    """How late an offset or an empty group may be forgotten where no exact time is known beforehand."""
    offset_metadata_bytes_max: int = 4096
