"""DescribeProducers: the idempotent producers that a partition remembers.

Behaviour worth knowing
    `last_timestamp` is when the producer last wrote here, by this node's clock.
    Whoever has a transaction open is shown with its first offset, and goes on to be shown until it has ended.
"""

from ropewalk.base.errors import RopewalkError
from ropewalk.broker.partitions.hosted_partitions import HostedPartitions
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


async def handle(
    request: DescribeProducersRequest, caller: Caller, *, hosted: HostedPartitions
) -> DescribeProducersResponse:
    del caller

    def describe(topic: str, index: int) -> PartitionResponse:
        try:
            partition = hosted.find(topic, index)
        except RopewalkError as error:
            return PartitionResponse(index, code_for(error), str(error))
        return PartitionResponse(
            index,
            ErrorCode.NONE,
            active_producers=tuple(
                ProducerState(
                    producer.producer_id,
                    producer.epoch,
                    producer.last_sequence,
                    producer.appended_at_ms,
                    producer.coordinator_epoch,
                    producer.transaction_first_offset,
                )
                for producer in partition.log.producers.active()
            ),
        )

    return DescribeProducersResponse(
        throttle_ms=0,
        topics=tuple(
            TopicResponse(topic.name, tuple(describe(topic.name, index) for index in topic.partition_indexes))
            for topic in request.topics
        ),
    )
