"""A leader asks for another set of replicas in sync (KIP-497, KIP-841, KIP-903).

Behaviour worth knowing
    It is compare-and-set: who asks must lead, in the epoch it names, and know the partition epoch that is in force.
    Every member is named with the broker epoch that the leader heard from it. One that has started again meanwhile, is fenced
    or is about to stop is refused, and with it the whole set; who is in sync already may stay while it stops.
    The set that is committed already is committed again, in a partition epoch of its own. A leader asks for that where
    it does not know what became of what it asked before: from then on that can no longer be accepted.
    With the set comes where the leader's log begins, below which everything was deleted; a start never goes back.
    A move is completed by the change that brings its last newcomer in sync; the asker may find itself no longer the leader.
    Partitions are decided one by one: one that is refused does not keep the others from being changed.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct, structs

from ropewalk.base.errors import (
    FencedEpoch,
    IneligibleReplica,
    InvalidRequest,
    NotLeader,
    RopewalkError,
    StalePartitionEpoch,
    UnknownEpoch,
    UnknownPartition,
)
from ropewalk.base.ids import LeaderEpoch, NodeId, TopicId
from ropewalk.controller.brokers import registered_broker
from ropewalk.controller.elections import Elections, Standing
from ropewalk.metadata.image import Image, Partition, Topic
from ropewalk.metadata.records import BrokerState, MetadataRecord
from ropewalk.metadata.settings.applied import AppliedSettings


class PartitionAlteration(Struct, frozen=True, kw_only=True):
    topic_id: TopicId
    index: int
    leader_epoch: LeaderEpoch
    partition_epoch: int
    isr: Sequence[tuple[NodeId, int]]
    """Each with its broker epoch."""

    start_offset: int = 0
    """Where the leader's log begins."""


class AlteredPartition(Struct, frozen=True):
    """What became of one alteration: the partition as it will be, or why nothing changes."""

    topic_id: TopicId
    index: int
    outcome: Partition | RopewalkError


def decide_alter_partition(
    image: Image,
    node_id: NodeId,
    broker_epoch: int,
    alterations: Iterable[PartitionAlteration],
    *,
    settings: AppliedSettings,
    now_ms: int,
) -> tuple[list[MetadataRecord], list[AlteredPartition]]:
    """The results count once the records are committed; there is one for each alteration, in their order."""
    broker = registered_broker(image, node_id, broker_epoch)
    if broker.state is BrokerState.FENCED:
        raise IneligibleReplica(f"broker {node_id} is fenced and leads nothing")
    elections = Elections(Standing(image), settings, now_ms)
    altered: list[AlteredPartition] = []
    seen: set[tuple[TopicId, int]] = set()
    for alteration in alterations:
        outcome: Partition | RopewalkError
        try:
            if (alteration.topic_id, alteration.index) in seen:
                raise InvalidRequest("a partition is altered twice in one request")
            topic = image.topic_by_id(alteration.topic_id)
            before = _checked(image, node_id, topic, alteration)
            wanted = structs.replace(
                before,
                isr=tuple(member for member, _ in alteration.isr),
                start_offset=max(before.start_offset, alteration.start_offset),
            )
            outcome = elections.settle(topic, before, wanted)
            if outcome is before:
                outcome = elections.restate(topic, before)
        except RopewalkError as refusal:
            outcome = refusal
        seen.add((alteration.topic_id, alteration.index))
        altered.append(AlteredPartition(alteration.topic_id, alteration.index, outcome))
    return elections.records, altered


def _checked(image: Image, node_id: NodeId, topic: Topic, alteration: PartitionAlteration) -> Partition:
    """The partition as it is, if it may be altered so."""
    if not 0 <= alteration.index < len(topic.partitions):
        raise UnknownPartition(f"{topic.name} has no partition {alteration.index}")
    partition = topic.partitions[alteration.index]
    name = f"{topic.name}-{partition.index}"
    if alteration.leader_epoch < partition.leader_epoch:
        raise FencedEpoch(
            f"{name} is in leader epoch {partition.leader_epoch}, {alteration.leader_epoch} has ended"
        )
    if alteration.leader_epoch > partition.leader_epoch:
        raise UnknownEpoch(
            f"{name} is in leader epoch {partition.leader_epoch}, {alteration.leader_epoch} has not begun"
        )
    if partition.leader != node_id:
        raise NotLeader(f"{name} is not led by {node_id}")
    if alteration.partition_epoch != partition.partition_epoch:
        raise StalePartitionEpoch(
            f"{name} has partition epoch {partition.partition_epoch}, not {alteration.partition_epoch}"
        )
    members = [member for member, _ in alteration.isr]
    if node_id not in members or len(set(members)) != len(members):
        raise InvalidRequest(
            f"the ISR of {name} must name its leader {node_id}, and everybody once: {members}"
        )
    for member, member_epoch in alteration.isr:
        if member not in partition.replicas:
            raise InvalidRequest(f"{member} is no replica of {name}")
        broker = image.brokers.get(member)
        stays = member in partition.isr and broker is not None and broker.state is not BrokerState.FENCED
        if broker is None or broker.epoch != member_epoch or not (broker.is_active or stays):
            raise IneligibleReplica(f"{member} with epoch {member_epoch} cannot be in sync for {name}")
    return partition
