"""How a queue's attributes, and the settings of its topic, are told to the cores of its partitions.

What a reader could get wrong
    Attributes are texts that a door has checked. One that cannot be read counts as not set: a queue is never kept from serving by one.
    Dead letters go to one partition of their target, which depends on the partition they come from: so their order is kept.
"""

from collections.abc import Mapping
from typing import Final

from ropewalk.base.limits import QUEUE_IN_FLIGHT_MAX
from ropewalk.metadata.image import Image
from ropewalk.metadata.queues import Queue, Redrive
from ropewalk.metadata.settings.applied import TopicSettings
from ropewalk.queues.settings import DeadLetterTarget, QueueSettings

_RETENTION_S_DEFAULT: Final = 4 * 24 * 3600
_MESSAGE_GROUP: Final = "messageGroup"


def settings_of(queue: Queue, index: int, image: Image, topic: TopicSettings) -> QueueSettings:
    """Of the partition with that index."""
    attributes = queue.attributes
    return QueueSettings(
        is_fifo=queue.is_fifo,
        is_fair=not queue.is_fifo,
        retention_ms=_seconds(attributes, "MessageRetentionPeriod", _RETENTION_S_DEFAULT) * 1000,
        delay_ms=_seconds(attributes, "DelaySeconds", 0) * 1000 if queue.is_fifo else 0,
        dead_letters=_dead_letters(queue, index, image),
        retry_backoff_ms=topic.queue_retry_backoff_ms,
        retry_backoff_ms_max=topic.queue_retry_backoff_max_ms,
        in_flight_max=QUEUE_IN_FLIGHT_MAX,
        deduplicates_by_group=attributes.get("DeduplicationScope") == _MESSAGE_GROUP,
    )


def lacks_target(queue: Queue, image: Image) -> bool:
    """Whether its dead letters are to go to a queue that is not there."""
    redrive = _redrive(queue)
    return redrive is not None and image.queues.get(redrive.target) is None


def _dead_letters(queue: Queue, index: int, image: Image) -> DeadLetterTarget | None:
    redrive = _redrive(queue)
    target = None if redrive is None else image.queues.get(redrive.target)
    if redrive is None or target is None:
        return None
    topic = image.topics_by_id.get(target.topic_id)
    if topic is None or not topic.partitions:
        return None
    return DeadLetterTarget(redrive.receive_count_max, target.topic_id, index % len(topic.partitions))


def _redrive(queue: Queue) -> Redrive | None:
    try:
        return queue.redrive
    except ValueError:
        return None


def _seconds(attributes: Mapping[str, str], name: str, default: int) -> int:
    text = attributes.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else default
