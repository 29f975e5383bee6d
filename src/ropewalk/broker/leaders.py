"""The way to a partition that this node leads, for those who do not care how it is kept."""

from typing import Protocol

from ropewalk.base.ids import TopicId
from ropewalk.broker.partition import Partition


class Leaders(Protocol):
    def find(self, topic: str, index: int) -> Partition:
        """Raises UnknownTopic, UnknownPartition or NotLeader."""

    def find_by_id(self, topic_id: TopicId, index: int) -> Partition:
        """As `find`; raises UnknownTopicId."""
