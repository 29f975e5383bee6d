"""DeleteRecords: move the start of a partition forward.

Behaviour worth knowing
    The new start is durable before it is answered, so no restart brings the records back.
    Offset -1 means the high watermark; anything above it is OFFSET_OUT_OF_RANGE.
    A topic that is only compacted refuses with POLICY_VIOLATION.
"""

from typing import Final, Protocol

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import Offset
from ropewalk.broker.leaders import Leaders
from ropewalk.broker.partition import Partition
from ropewalk.broker.topics import Topics, check_records_may_be_deleted
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
    request: DeleteRecordsRequest, caller: Caller, *, leaders: Leaders, topics: Topics, trimming: Trimming
) -> DeleteRecordsResponse:
    async def trim(name: str, asked: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
        try:
            partition = leaders.find(name, asked.index)
            check_records_may_be_deleted(topics.image.topic(name), topics.view)
            offset = partition.high_watermark if asked.offset == _HIGH_WATERMARK else Offset(asked.offset)
            await trimming.trim(partition, offset)
        except RopewalkError as error:
            return DeleteRecordsPartitionResult(asked.index, -1, code_for(error))
        return DeleteRecordsPartitionResult(asked.index, partition.log.start_offset, ErrorCode.NONE)

    with caller.hold():
        return DeleteRecordsResponse(
            throttle_ms=0,
            topics=tuple(
                [
                    DeleteRecordsTopicResult(
                        topic.name, tuple([await trim(topic.name, asked) for asked in topic.partitions])
                    )
                    for topic in request.topics
                ]
            ),
        )
