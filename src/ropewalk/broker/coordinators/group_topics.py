"""The topics there are, as groups look at them. Patterns of clients match the topics that nodes write for themselves, too, as in Kafka."""

from collections.abc import Iterator, Sequence
from typing import Final

from ropewalk.base.ids import TopicId
from ropewalk.groups.consumer.subscriptions import TopicFacts
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import AclAdded, AclRemoved, Fact, PartitionCreated, TopicCreated, TopicDeleted

_CHANGING: Final = (TopicCreated, PartitionCreated, TopicDeleted, AclAdded, AclRemoved)
"""After these a pattern may match other topics, or ones that may be described."""


class GroupTopics:
    def __init__(self, image: Image) -> None:
        self._image = image
        self._names: dict[TopicId, str] | None = None
        """Of the topics that were followed, which the image may know no more."""
        self.version = 0

    def follow(self, records: Sequence[Fact]) -> set[str]:
        """The image has changed by `records`. Answers the names of topics that are deleted; others may have them by now."""
        if any(isinstance(record, _CHANGING) for record in records):
            self.version += 1
        if self._names is None:
            self._names = {topic_id: topic.name for topic_id, topic in self._image.topics_by_id.items()}
        deleted: set[str] = set()
        for record in records:
            if isinstance(record, TopicCreated):
                self._names[record.topic_id] = record.name
            elif isinstance(record, TopicDeleted) and record.topic_id in self._names:
                deleted.add(self._names.pop(record.topic_id))
        return deleted

    def find(self, name: str) -> TopicFacts | None:
        topic = self._image.topics.get(name)
        return None if topic is None else TopicFacts(topic.topic_id, len(topic.partitions))

    def name_of(self, topic_id: TopicId) -> str | None:
        topic = self._image.topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    def names(self) -> Iterator[str]:
        return iter(self._image.topics)
