"""DescribeQuorum: who may decide, who does, and how far all others have followed the metadata.

Behaviour worth knowing
    Kafka has one partition that this is asked of, `__cluster_metadata-0`; any other is unknown.
    Voters are the nodes with the role `controller`, whether the metadata is at home there or in etcd; the others are observers.
    The epoch is the controller's, the high watermark and the leader's end are the end of the metadata log.
    Of a node that the controller has not heard yet neither offset nor times are known: -1.
"""

from collections.abc import Mapping
from typing import Final

from ropewalk.base.ids import NodeId
from ropewalk.broker.cluster.quorum import Heard
from ropewalk.kafka.caller import Caller
from ropewalk.metadata.image import Broker, Image
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumListener,
    QuorumNode,
    QuorumPartitionData,
    QuorumReplica,
    QuorumTopicData,
)

METADATA_TOPIC: Final = "__cluster_metadata"


async def handle(
    request: DescribeQuorumRequest, caller: Caller, *, image: Image, heard: Mapping[NodeId, Heard]
) -> DescribeQuorumResponse:
    del caller
    voters = [broker for broker in image.brokers.values() if "controller" in broker.roles]
    return DescribeQuorumResponse(
        error_code=ErrorCode.NONE,
        topics=tuple(
            QuorumTopicData(
                topic.name,
                tuple(
                    _partition(image, heard)
                    if (topic.name, asked.index) == (METADATA_TOPIC, 0)
                    else QuorumPartitionData(asked.index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                    for asked in topic.partitions
                ),
            )
            for topic in request.topics
        ),
        nodes=tuple(
            QuorumNode(
                broker.node_id,
                tuple(QuorumListener(each.listener, each.host, each.port) for each in broker.endpoints),
            )
            for broker in voters
        ),
    )


def _partition(image: Image, heard: Mapping[NodeId, Heard]) -> QuorumPartitionData:
    def replica(broker: Broker) -> QuorumReplica:
        if broker.node_id == image.controller_id:
            return _replica(broker, image.end_offset, heard.get(broker.node_id))
        told = heard.get(broker.node_id)
        return _replica(broker, -1 if told is None else min(told.metadata_offset, image.end_offset), told)

    brokers = image.brokers.values()
    return QuorumPartitionData(
        index=0,
        leader_id=-1 if image.controller_id is None else image.controller_id,
        leader_epoch=image.controller_epoch,
        high_watermark=image.end_offset,
        current_voters=tuple(replica(each) for each in brokers if "controller" in each.roles),
        observers=tuple(replica(each) for each in brokers if "controller" not in each.roles),
    )


def _replica(broker: Broker, end_offset: int, told: Heard | None) -> QuorumReplica:
    return QuorumReplica(
        broker.node_id,
        broker.directory or bytes(16),
        end_offset,
        -1 if told is None else told.heard_at_ms,
        -1 if told is None else told.caught_up_at_ms,
    )
