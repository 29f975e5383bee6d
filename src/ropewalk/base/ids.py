"""Names for the things that are numbers or bytes, so that the type checker tells them apart.

Offsets are exclusive at their end: `end_offset` is the next offset to be written. A `TopicId` is the
sixteen raw bytes of a UUID, because that is what travels; `format_id` shows it as Kafka does.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final, NewType

from msgspec import Struct

NodeId = NewType("NodeId", int)
Offset = NewType("Offset", int)
LeaderEpoch = NewType("LeaderEpoch", int)
ProducerId = NewType("ProducerId", int)
ProducerEpoch = NewType("ProducerEpoch", int)
TopicId = NewType("TopicId", bytes)
OwnerId = NewType("OwnerId", bytes)
"""Sixteen bytes: whose state lies between the records of a log."""

TOPIC_ID_NONE: Final = TopicId(bytes(16))
"""On the wire: no topic id is known or wanted."""

NO_PRODUCER: Final = ProducerId(-1)
"""In a record batch: written by a producer that is not idempotent."""


class TopicPartition(Struct, frozen=True, order=True, gc=False):
    """One partition of one topic, by name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def format_id(identifier: bytes) -> str:
    """Sixteen bytes as the 22 characters that Kafka's tools print."""
    return urlsafe_b64encode(identifier).decode().rstrip("=")


def parse_id(text: str) -> bytes:
    """The inverse of `format_id`; raises `ValueError` for anything that is not sixteen bytes."""
    identifier = urlsafe_b64decode(text + "==")
    if len(identifier) != 16:
        raise ValueError(f"{text!r} is not a 16-byte identifier")
    return identifier
