"""AlterPartition: a leader asks the controller for other sets of replicas in sync, each partition by itself."""

from collections.abc import Callable, Sequence

from ropewalk.base.ids import LeaderEpoch, NodeId, TopicId
from ropewalk.broker.peers.calls.controller_call import REFUSALS, ControllerCall, controller_call
from ropewalk.client.errors import RemoteError
from ropewalk.controller.alter_partition import AlteredPartition, PartitionAlteration
from ropewalk.metadata.image import Partition
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.peer import alter_partition as wire

ReplicasOf = Callable[[TopicId, int], tuple[NodeId, ...]]


def alter_partition(
    node_id: NodeId, broker_epoch: int, alterations: Sequence[PartitionAlteration], replicas_of: ReplicasOf
) -> ControllerCall[Sequence[AlteredPartition]]:
    """`replicas_of` adds to an answer what the controller does not repeat."""
    request = wire.AlterPartitionRequest(
        node_id,
        broker_epoch,
        tuple(
            wire.PartitionAlteration(
                alteration.topic_id,
                alteration.index,
                alteration.leader_epoch,
                alteration.partition_epoch,
                tuple(wire.InSync(member, epoch) for member, epoch in alteration.isr),
                alteration.start_offset,
            )
            for alteration in alterations
        ),
    )
    return controller_call(
        wire.API, request, lambda answer: [_altered(each, replicas_of) for each in answer.partitions]
    )


def _altered(answer: wire.PartitionAltered, replicas_of: ReplicasOf) -> AlteredPartition:
    topic_id = TopicId(answer.topic_id)
    if answer.error_code != ErrorCode.NONE:
        return AlteredPartition(topic_id, answer.index, REFUSALS.error(RemoteError(answer.error_code)))
    partition = Partition(
        index=answer.index,
        replicas=replicas_of(topic_id, answer.index),
        isr=tuple(NodeId(member) for member in answer.isr),
        leader=None if answer.leader < 0 else NodeId(answer.leader),
        leader_epoch=LeaderEpoch(answer.leader_epoch),
        partition_epoch=answer.partition_epoch,
    )
    return AlteredPartition(topic_id, answer.index, partition)
