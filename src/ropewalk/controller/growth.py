"""Topics that get more partitions by themselves while more is written to them than their partitions are meant to take.

Behaviour worth knowing
    Only topics with `partitions.auto.max` grow, since growth changes where keys go. Compacted topics and the
    cluster's own never do: what is in them would be looked for elsewhere.
    The load must have been there for a while, and it has to be there as long again before the topic grows further. A topic
    at most doubles at a time.
"""

from collections.abc import Iterator
from math import ceil

from ropewalk.base.ids import TopicId
from ropewalk.controller.load import ClusterLoad
from ropewalk.controller.topics import CreatePartitions
from ropewalk.metadata.image import Image, Topic
from ropewalk.metadata.internal_topics import INTERNAL_TOPICS
from ropewalk.metadata.settings.applied import AppliedSettings


class Growth:
    """Remembers since when topics have had too much to take; a controller that takes over begins to watch anew."""

    __slots__ = ("_since_ms",)

    def __init__(self) -> None:
        self._since_ms: dict[TopicId, int] = {}

    def on_load(
        self, image: Image, load: ClusterLoad, settings: AppliedSettings, now_ms: int
    ) -> list[CreatePartitions]:
        """The topics that should grow now. `now_ms` is measured time, not the time of day."""
        wanted = {topic.topic_id: (topic, count) for topic, count in _too_small(image, load, settings)}
        self._since_ms = {topic_id: self._since_ms.get(topic_id, now_ms) for topic_id in wanted}
        sustained_ms = settings.of_broker.partitions_auto_sustained_ms
        commands = []
        for topic_id, (topic, count) in wanted.items():
            if now_ms - self._since_ms[topic_id] >= sustained_ms:
                self._since_ms[topic_id] = now_ms
                commands.append(CreatePartitions(name=topic.name, partition_count=count))
        return commands


def _too_small(image: Image, load: ClusterLoad, settings: AppliedSettings) -> Iterator[tuple[Topic, int]]:
    """Topics whose partitions take too much, with the number of partitions they should have."""
    for topic in image.topics.values():
        if "partitions.auto.max" not in topic.settings:
            continue  # most topics: this is looked at every few seconds
        applied = settings.of_topic(topic)
        count = len(topic.partitions)
        count_max = applied.partitions_auto_max
        if count_max is None or count >= count_max or applied.compacts or topic.name in INTERNAL_TOPICS:
            continue
        bytes_in = sum(load.of(topic.topic_id, index).bytes_in for index in range(count))
        byte_rate = applied.partitions_auto_byte_rate
        if bytes_in > count * byte_rate:
            yield topic, min(count_max, 2 * count, ceil(bytes_in / byte_rate))
