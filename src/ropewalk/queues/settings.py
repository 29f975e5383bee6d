"""What an administrator may decide about a queue, as far as its partitions' cores care."""

from msgspec import Struct

from ropewalk.base.limits import QUEUE_IN_FLIGHT_MAX, QUEUE_WINDOW_MESSAGES_MAX


class DeadLetterTarget(Struct, frozen=True):
    """Where messages go that were received often enough in vain."""

    receive_count_max: int
    topic_id: bytes
    partition: int


class QueueSettings(Struct, frozen=True):
    is_fifo: bool = False
    is_fair: bool = False
    """Standard queues: no group keeps the others waiting (`fair_line.py`)."""
    retention_ms: int = 4 * 24 * 3_600_000
    delay_ms: int = 0
    """FIFO: of every message, those that are there included. Standard messages bring their own."""
    dead_letters: DeadLetterTarget | None = None
    retry_backoff_ms: int = 0
    """After a receive in vain a message rests for so long, and after every further one for twice as long. 0: not at all."""
    retry_backoff_ms_max: int = 900_000
    deduplicates_by_group: bool = False
    in_flight_max: int = QUEUE_IN_FLIGHT_MAX
    window_messages_max: int = QUEUE_WINDOW_MESSAGES_MAX
