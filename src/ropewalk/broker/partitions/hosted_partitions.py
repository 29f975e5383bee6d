"""The way to a partition that this node holds, for those who do not care how it is kept."""

from typing import Protocol

from ropewalk.base.ids import TopicId
from ropewalk.broker.partitions.hosted import Hosted
from ropewalk.broker.partitions.partition import Partition


class HostedPartitions(Protocol):
    def find(self, topic: str, index: int) -> Partition:
        """The one that is led here. Raises UnknownTopic, UnknownPartition or NotLeader."""

    def find_by_id(self, topic_id: TopicId, index: int) -> Partition:
        """As `find`; raises UnknownTopicId."""

    def find_copy(self, topic: str, index: int) -> Hosted:
        """As `find`, or a copy of what another node leads."""

    def find_copy_by_id(self, topic_id: TopicId, index: int) -> Hosted: ...
