"""What a consumer is given."""

from typing import Any

from msgspec import Struct

from ropewalk.base.ids import TopicPartition


class Message(Struct, frozen=True, gc=False):
    """One record. Key and value are bytes, or what the consumer's formats made of them; None is no key, no value."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: Any
    value: Any
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)
