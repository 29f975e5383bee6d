"""The id of a message: made of its topic, partition and offset, so that nobody has to remember it.

    6 bytes of a digest of the topic's id, 2 bytes of the partition, 8 bytes of the offset

A message that was moved keeps the id that it had before (`headers.MESSAGE_ID`), which leads to where it was.
"""

from hashlib import sha256
from struct import Struct as Layout
from typing import Final

from msgspec import Struct

from ropewalk.base.ids import TopicId

MESSAGE_ID_BYTES: Final = 16
_LAYOUT: Final = Layout(">6sHQ")
_DIGEST_BYTES: Final = 6
_OFFSET_MAX: Final = 2**63 - 1
"""Larger ones no log has: somebody made the id up."""


class MessagePlace(Struct, frozen=True, gc=False):
    partition: int
    offset: int


def topic_digest(topic_id: TopicId) -> bytes:
    """What `make_message_id` begins with; the same for all messages of a topic."""
    return sha256(topic_id).digest()[:_DIGEST_BYTES]


def make_message_id(digest: bytes, partition: int, offset: int) -> bytes:
    """`digest` is the topic's (`topic_digest`)."""
    return _LAYOUT.pack(digest, partition, offset)


def read_message_id(message_id: bytes, digest: bytes) -> MessagePlace | None:
    """Where the message lies, or lay; None for what is no id of that topic."""
    if len(message_id) != MESSAGE_ID_BYTES or not message_id.startswith(digest):
        return None
    _, partition, offset = _LAYOUT.unpack(message_id)
    return MessagePlace(partition, offset) if offset <= _OFFSET_MAX else None
