"""The topics there are, as groups look at them. Patterns of clients do not see the topics that nodes write for themselves."""

from collections.abc import Iterator, Sequence

from ropewalk.base.ids import TopicId
from ropewalk.groups.consumer.subscriptions import TopicFacts
from ropewalk.metadata.image import Image
from ropewalk.metadata.internal_topics import INTERNAL_TOPICS
from ropewalk.metadata.records import Fact, PartitionCreated, TopicCreated, TopicDeleted


class GroupTopics:
    def __init__(self, image: Image) -> None:
        self._image = image
        self.version = 0

    def follow(self, records: Sequence[Fact]) -> None:
        """The image has changed by `records`."""
        if any(isinstance(record, TopicCreated | PartitionCreated | TopicDeleted) for record in records):
            self.version += 1

    def find(self, name: str) -> TopicFacts | None:
        topic = self._image.topics.get(name)
        return None if topic is None else TopicFacts(topic.topic_id, len(topic.partitions))

    def name_of(self, topic_id: TopicId) -> str | None:
        topic = self._image.topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    def names(self) -> Iterator[str]:
        return (name for name in self._image.topics if name not in INTERNAL_TOPICS)
