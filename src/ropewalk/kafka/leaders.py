"""What handlers may ask of the broker about partitions."""

from typing import Protocol

from ropewalk.base.errors import FencedEpoch, UnknownEpoch
from ropewalk.base.ids import TopicId
from ropewalk.broker.partition import Partition


class Leaders(Protocol):
    def find(self, topic: str, index: int) -> Partition:
        """Raises UnknownTopic, UnknownPartition or NotLeader."""

    def find_by_id(self, topic_id: TopicId, index: int) -> Partition:
        """As `find`; raises UnknownTopicId."""


def check_epoch(partition: Partition, caller_epoch: int) -> None:
    """KIP-320: a client whose metadata is older or newer than ours must hear of it. -1: it does not care."""
    if caller_epoch == -1 or caller_epoch == partition.leader_epoch:
        return
    if caller_epoch < partition.leader_epoch:
        raise FencedEpoch(f"{partition.name} is in epoch {partition.leader_epoch}, not {caller_epoch}")
    raise UnknownEpoch(f"{partition.name} is in epoch {partition.leader_epoch}, not yet {caller_epoch}")
