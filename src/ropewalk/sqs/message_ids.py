"""Message ids as SQS shows them: the text of a UUID, which says where the message lies (`broker/queues/message_ids.py`)."""

from functools import lru_cache
from typing import Final

from ropewalk.base.ids import TopicId
from ropewalk.base.limits import SQS_ID_PREFIXES_MAX
from ropewalk.broker.queues.message_ids import (
    MESSAGE_ID_BYTES,
    MessagePlace,
    make_message_id,
    read_message_id,
    topic_digest,
)

_digest = lru_cache(maxsize=SQS_ID_PREFIXES_MAX)(topic_digest)
_SHORT_OFFSET_MAX: Final = 1 << 48


def message_id(topic_id: TopicId, partition: int, offset: int) -> str:
    if (
        offset < _SHORT_OFFSET_MAX
    ):  # twelve digits are enough, and the rest is the same for all of the partition
        return f"{_beginning(topic_id, partition)}{offset:012x}"
    return id_text(make_message_id(_digest(topic_id), partition, offset))


@lru_cache(maxsize=SQS_ID_PREFIXES_MAX)
def _beginning(topic_id: TopicId, partition: int) -> str:
    return id_text(make_message_id(_digest(topic_id), partition, 0))[:-12]


def place_of(text: str, topic_id: TopicId) -> MessagePlace | None:
    """None where it is not the id of a message of that topic."""
    try:
        content = bytes.fromhex(text.replace("-", ""))
    except ValueError:
        return None
    return read_message_id(content, _digest(topic_id))


def id_text(content: bytes) -> str:
    """Of an id of sixteen bytes."""
    digits = content.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def is_id(content: bytes) -> bool:
    """Whether a message that was moved has brought its id along."""
    return len(content) == MESSAGE_ID_BYTES
