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
    consumer_session_ms: int = 45_000
    """How long a member of the consumer protocol may be silent; it cannot ask for another time."""
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_member_count_max: int = 2**31 - 1
    consumer_assignors: tuple[str, ...] = ("uniform", "range", "sticky")
    """What members may ask for; the first is for groups whose members do not."""
    migration_policy: str = "bidirectional"
    """Which way a group may go between the protocols: "upgrade", "downgrade", "bidirectional" or "disabled"."""
