"""Putting the replicas of a partition elsewhere.

Behaviour worth knowing
    A move only ever adds at first: newcomers copy while everybody else goes on. When all of them are in sync, and enough of
    those who stay, the others leave; `elections.settle` completes it with the change that makes it so.
    Asking for other replicas while a move is under way replaces that move: what it had added and is wanted no more leaves.
    An observer that is wanted as a replica becomes one: it has most of what it needs.
    Giving a move up puts the replicas back that were there before, in the order that was wanted.
"""

from collections.abc import Iterator, Sequence

from msgspec import structs

from ropewalk.base.errors import InvalidReplicaAssignment, InvalidReplicationFactor, NoReassignment
from ropewalk.base.ids import NodeId
from ropewalk.controller.elections import Elections, Standing, all_partitions
from ropewalk.controller.topics import check_replicas
from ropewalk.metadata.image import Image, Partition, Topic
from ropewalk.metadata.records import MetadataRecord
from ropewalk.metadata.settings.applied import AppliedSettings


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
    wanted = _towards(partition, target, settled_replicas)
    holders = partition.isr or partition.eligible
    if holders and not any(node_id in wanted.replicas for node_id in holders):
        raise InvalidReplicaAssignment(
            f"{topic_name}-{index} cannot do without {list(holders)}: nobody else holds all that was acknowledged"
        )
    elections = Elections(Standing(image), settings, now_ms)
    elections.settle(topic, partition, wanted)
    return elections.records


def decide_set_observers(
    image: Image,
    topic_name: str,
    index: int,
    observers: Sequence[NodeId],
    *,
    settings: AppliedSettings,
    now_ms: int,
) -> list[MetadataRecord]:
    """These brokers and no others keep a copy that nobody waits for."""
    topic, partition = image.topic(topic_name), image.partition(topic_name, index)
    for node_id in observers:
        if node_id in partition.replicas:
            raise InvalidReplicaAssignment(f"{node_id} is a replica of {topic_name}-{index}")
        if node_id not in image.brokers:
            raise InvalidReplicaAssignment(f"broker {node_id} is not registered")
    if len(set(observers)) != len(observers):
        raise InvalidReplicaAssignment(f"the observers name a broker twice: {list(observers)}")
    elections = Elections(Standing(image), settings, now_ms)
    elections.settle(topic, partition, structs.replace(partition, observers=tuple(observers)))
    return elections.records


def moves(image: Image) -> Iterator[tuple[Topic, Partition]]:
    """Partitions that are being moved."""
    return ((topic, partition) for topic, partition in all_partitions(image) if partition.is_moving)


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
        observers=tuple(node_id for node_id in partition.observers if node_id not in target),
    )
