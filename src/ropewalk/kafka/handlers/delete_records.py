"""DeleteRecords: move the start of a partition forward.

Behaviour worth knowing
    It is answered when every replica in service begins there, durably, and no other can lead with an earlier start: neither a
    restart nor another leader brings the records back. Replicas out of service hold nobody up; the metadata speak for them.
    Where that takes longer than the caller's `timeout_ms`: REQUEST_TIMED_OUT. The records are deleted all the same.
    The offset that is answered is the low watermark: where those in service begin at the earliest.
    Offset -1 means the high watermark; anything above it is OFFSET_OUT_OF_RANGE.
    A topic that is only compacted refuses with POLICY_VIOLATION.
"""

import asyncio
from typing import Final, Protocol

from ropewalk.base.errors import RopewalkError, TimedOut
from ropewalk.base.ids import Offset
from ropewalk.broker.partitions.hosted_partitions import HostedPartitions
from ropewalk.broker.partitions.partition import Partition
from ropewalk.broker.topics.topics import Topics, check_records_may_be_deleted
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

_HIGH_WATERMARK: Final = -1


class Trimming(Protocol):
    async def trim(self, partition: Partition, offset: Offset) -> None:
        """Delete what is below `offset`; returns when that is durable."""


async def handle(
    request: DeleteRecordsRequest,
    caller: Caller,
    *,
    hosted: HostedPartitions,
    topics: Topics,
    trimming: Trimming,
) -> DeleteRecordsResponse:
    async def trim(name: str, asked: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
        try:
            partition = hosted.find(name, asked.index)
            check_records_may_be_deleted(topics.image.topic(name), topics.view)
            offset = partition.high_watermark if asked.offset == _HIGH_WATERMARK else Offset(asked.offset)
            await trimming.trim(partition, offset)
            trimmed = partition.expect_start(offset, request.timeout_ms)
            if trimmed is not None:
                await trimmed
        except TimedOut as error:
            low_watermark = partition.low_watermark(topics.image.brokers)
            return DeleteRecordsPartitionResult(asked.index, low_watermark, code_for(error))
        except RopewalkError as error:
            return DeleteRecordsPartitionResult(asked.index, -1, code_for(error))
        low_watermark = partition.low_watermark(topics.image.brokers)
        return DeleteRecordsPartitionResult(asked.index, low_watermark, ErrorCode.NONE)

    with caller.hold():
        results = await asyncio.gather(
            *(trim(topic.name, asked) for topic in request.topics for asked in topic.partitions)
        )
    answered = iter(results)
    return DeleteRecordsResponse(
        throttle_ms=0,
        topics=tuple(
            [
                DeleteRecordsTopicResult(topic.name, tuple([next(answered) for _ in topic.partitions]))
                for topic in request.topics
            ]
        ),
    )
