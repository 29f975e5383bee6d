"""What messages about queues between nodes are made of.

A refusal is named as the engine names it, empty for none, since Kafka's codes could not tell those of a queue apart.
"""

from ropewalk.wire.types import Int32, Int64, Message


class QueueHeader(Message, frozen=True):
    name: str
    value: bytes | None


class QueueRecord(Message, frozen=True):
    offset: Int64
    timestamp: Int64
    key: bytes | None
    value: bytes | None
    headers: tuple[QueueHeader, ...] = ()


class QueueHandle(Message, frozen=True):
    offset: Int64
    attempt: Int64


class QueueRefusal(Message, frozen=True):
    name: str = ""
    reason: str = ""


class QueueDelivered(Message, frozen=True):
    """A message that is given to a receiver."""

    partition: Int32
    attempt: Int64
    receive_count: Int32
    first_received_at_ms: Int64
    record: QueueRecord
