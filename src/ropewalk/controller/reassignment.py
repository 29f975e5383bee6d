"""Putting the replicas of a partition elsewhere.

Behaviour worth knowing
    A move only ever adds at first: newcomers copy while everybody else goes on. When all of them are in sync, and enough of
    those who stay, the others leave; `elections.settle` completes it with the change that makes it so.
    Asking for other replicas while a move is under way replaces that move: what it had added and is wanted no more leaves.
    Giving a move up puts the replicas back that were there before, in the order that was wanted.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct, structs

from ropewalk.base.errors import InvalidReplicaAssignment, InvalidReplicationFactor, NoReassignment
from ropewalk.base.ids import NodeId
from ropewalk.controller.elections import Elections, Standing, all_partitions
from ropewalk.controller.topics import check_replicas
from ropewalk.metadata.image import Image, Partition, Topic
from ropewalk.metadata.records import MetadataRecord
from ropewalk.metadata.settings.applied import AppliedSettings


class Move(Struct, frozen=True):
    """A partition that is being moved."""

    topic: Topic
    partition: Partition


def decide_reassign(
    image: Image,
    topic_name: str,
    index: int,
    replicas: Sequence[NodeId] | None,
    *,
    settings: AppliedSettings,
    now_ms: int,
    may_change_factor: bool = True,
) -> list[MetadataRecord]:
    """With no replicas: give up the move that is under way."""
    topic, partition = image.topic(topic_name), image.partition(topic_name, index)
    settled_replicas = tuple(node_id for node_id in partition.replicas if node_id not in partition.adding)
    if replicas is None:
        if not partition.is_moving:
            raise NoReassignment(f"{topic_name}-{index} is not being moved")
        target = settled_replicas
    else:
        target = tuple(replicas)
        check_replicas(image, [target], first_index=index, replication_factor=len(target))
        if not may_change_factor and len(target) != len(settled_replicas):
            raise InvalidReplicationFactor(
                f"{topic_name}-{index} has {len(settled_replicas)} replicas, {len(target)} are given"
            )
        observing = [node_id for node_id in target if node_id in partition.observers]
        if observing:
            raise InvalidReplicaAssignment(f"{topic_name}-{index} is observed by {observing}; promote them")
    wanted = _towards(partition, target, settled_replicas)
    holders = partition.isr or partition.eligible
    if holders and not any(node_id in wanted.replicas for node_id in holders):
        raise InvalidReplicaAssignment(
            f"{topic_name}-{index} cannot do without {list(holders)}: nobody else holds all that was acknowledged"
        )
    elections = Elections(Standing(image), settings, now_ms)
    elections.settle(topic, partition, wanted)
    return elections.records


def moves(image: Image) -> Iterator[Move]:
    for topic, partition in all_partitions(image):
        if partition.is_moving:
            yield Move(topic, partition)


def _towards(partition: Partition, target: tuple[NodeId, ...], settled: tuple[NodeId, ...]) -> Partition:
    """The wanted replicas first, in their order, so that the preferred leader is theirs; then those who are to leave.

    A newcomer of an earlier move that is in sync already has nothing left to copy.
    """
    leaving = tuple(node_id for node_id in settled if node_id not in target)
    kept = (*target, *leaving)
    return structs.replace(
        partition,
        replicas=kept,
        isr=tuple(node_id for node_id in partition.isr if node_id in kept),
        adding=tuple(node_id for node_id in target if node_id not in settled),
        removing=leaving,
    )
