"""Moving partitions between brokers: who leads them, and who holds them.

Behaviour worth knowing
    The preferred leader is the first replica. Asking for what is so already is refused with `ElectionNotNeeded`, which
    tools take for success.
    An election among replicas that are out of sync would lose records; nothing here holds one.
    Records are not copied between brokers in this version: replicas can be put in another order, not elsewhere.
"""

from collections.abc import Sequence

from msgspec import structs

from ropewalk.base.errors import (
    ElectionNotNeeded,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    LeaderNotAvailable,
    NoReassignment,
)
from ropewalk.base.ids import LeaderEpoch, NodeId
from ropewalk.controller.topics import check_replicas
from ropewalk.metadata.image import Image, Partition
from ropewalk.metadata.records import MetadataRecord, PartitionChanged


def decide_elect_preferred(image: Image, topic_name: str, index: int) -> list[MetadataRecord]:
    partition = image.partition(topic_name, index)
    preferred = partition.replicas[0]
    if partition.leader == preferred:
        raise ElectionNotNeeded(f"{topic_name}-{index} is led by its preferred replica {preferred}")
    if preferred not in partition.isr:
        raise LeaderNotAvailable(f"{topic_name}-{index} cannot be led by {preferred}, which is not in sync")
    elected = structs.replace(
        partition, leader=preferred, leader_epoch=LeaderEpoch(partition.leader_epoch + 1)
    )
    return [_changed(image, topic_name, elected)]


def decide_elect_any(image: Image, topic_name: str, index: int) -> list[MetadataRecord]:
    """For a partition that has lost its leader."""
    partition = image.partition(topic_name, index)
    if partition.leader is not None:
        raise ElectionNotNeeded(f"{topic_name}-{index} is led by {partition.leader}")
    raise LeaderNotAvailable(f"{topic_name}-{index} has no replica that could lead it")


def decide_reassign(
    image: Image,
    topic_name: str,
    index: int,
    replicas: Sequence[NodeId] | None,
    *,
    may_change_factor: bool = True,
) -> list[MetadataRecord]:
    """With no replicas: give up the move that is under way."""
    partition = image.partition(topic_name, index)
    if replicas is None:
        raise NoReassignment(f"{topic_name}-{index} is not being moved")
    wanted = tuple(replicas)
    check_replicas(image, [wanted], first_index=index, replication_factor=len(wanted))
    if not may_change_factor and len(wanted) != len(partition.replicas):
        raise InvalidReplicationFactor(
            f"{topic_name}-{index} has {len(partition.replicas)} replicas, {len(wanted)} are given"
        )
    if wanted == partition.replicas:
        return []
    if set(wanted) != set(partition.replicas):
        raise InvalidReplicaAssignment(
            f"{topic_name}-{index} is on {list(partition.replicas)} and cannot be moved to {list(wanted)} in this version"
        )
    return [_changed(image, topic_name, structs.replace(partition, replicas=wanted))]


def _changed(image: Image, topic_name: str, partition: Partition) -> PartitionChanged:
    after = structs.replace(partition, partition_epoch=partition.partition_epoch + 1)
    return PartitionChanged(image.topic(topic_name).topic_id, **structs.asdict(after))
