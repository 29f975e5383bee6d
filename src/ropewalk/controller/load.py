"""What the brokers carry, as their heartbeats tell it, put together for decisions about the whole cluster."""

from collections.abc import Mapping

from msgspec import Struct

from ropewalk.base.ids import NodeId, TopicId
from ropewalk.metadata.image import Image


class PartitionLoad(Struct, frozen=True, gc=False):
    """Of one partition that the node leads, per second, over the last minute or so."""

    topic_id: TopicId
    index: int
    bytes_in: int
    bytes_out: int
    records_in: int


class NodeLoad(Struct, frozen=True):
    """What one node carries. Only the busiest of its partitions are in it."""

    cpu_permille: int = 0
    disk_used_bytes: int = 0
    disk_total_bytes: int = 0
    partitions: tuple[PartitionLoad, ...] = ()


class Traffic(Struct, frozen=True):
    """Of one partition, per second."""

    bytes_in: int = 0
    bytes_out: int = 0
    records_in: int = 0


QUIET = Traffic()


class ClusterLoad(Struct, frozen=True):
    nodes: Mapping[NodeId, NodeLoad]
    traffic: Mapping[tuple[TopicId, int], Traffic]
    """Of partitions that anything was told of; all others are quiet."""

    def of(self, topic_id: TopicId, index: int) -> Traffic:
        return self.traffic.get((topic_id, index), QUIET)


def gather(image: Image, loads: Mapping[NodeId, NodeLoad]) -> ClusterLoad:
    """Traffic as told by whoever leads: a former leader's figures are of another time."""
    traffic: dict[tuple[TopicId, int], Traffic] = {}
    for node_id in sorted(loads):
        for told in loads[node_id].partitions:
            topic = image.topics_by_id.get(told.topic_id)
            if topic is None or not 0 <= told.index < len(topic.partitions):
                continue
            if topic.partitions[told.index].leader == node_id:
                traffic[topic.topic_id, told.index] = Traffic(told.bytes_in, told.bytes_out, told.records_in)
    return ClusterLoad({node_id: loads[node_id] for node_id in sorted(loads)}, traffic)
