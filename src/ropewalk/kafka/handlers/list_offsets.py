"""ListOffsets: offsets by name (latest, earliest, …) or by time.

Behaviour worth knowing
    A time query answers the first record at or after the time, to the record, and -1/-1 without an error if
    there is none.
    `latest` is the high watermark, or the last stable offset for read_committed.
    A leader that has yet to hear how far its followers are does not say what is latest, nor that there is nothing (KIP-207):
    either could seem to go back.
    Kafka's replica id of debuggers (-2) asks about the copy at hand, whoever leads: its beginning, its end, committed or not, and
    the epoch of its last records. It is how an operator sees what an unclean election would lose.
    Nothing is tiered yet, so `latest tiered` answers -1 and `earliest local` the log start; `earliest pending upload`
    answers -1, as Kafka does for a topic without remote storage.
"""

import asyncio
from functools import partial
from typing import Final

from ropewalk.base.errors import OffsetNotAvailable, RopewalkError, StorageFailed
from ropewalk.base.ports import Pool
from ropewalk.broker.partitions.hosted_partitions import HostedPartitions
from ropewalk.broker.partitions.partition import Partition
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.list_offsets import (
    ANY_COPY,
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

_READ_COMMITTED: Final = 1
_SINCE: Final = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
"""The version that first knows a sentinel."""
_NEVER: Final = 1 << 15
_NOT_AVAILABLE_SINCE: Final = 5


async def handle(
    request: ListOffsetsRequest, caller: Caller, *, hosted: HostedPartitions, pool: Pool
) -> ListOffsetsResponse:
    read_committed = request.isolation_level == _READ_COMMITTED

    async def answer(topic: str, asked: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        if request.replica_id == ANY_COPY:
            return _of_copy(topic, asked, hosted)
        if asked.timestamp < 0 and caller.version < _SINCE.get(asked.timestamp, _NEVER):
            return ListOffsetsPartitionResponse(asked.index, ErrorCode.UNSUPPORTED_VERSION)
        try:
            partition = hosted.find(topic, asked.index)
            partition.check_epoch(asked.current_leader_epoch)
            timestamp, offset = await _look_up(partition, asked.timestamp, read_committed, pool)
            if asked.timestamp == LATEST or offset < 0:
                partition.check_committed()
        except OffsetNotAvailable as error:
            code = (
                code_for(error) if caller.version >= _NOT_AVAILABLE_SINCE else ErrorCode.LEADER_NOT_AVAILABLE
            )
            return ListOffsetsPartitionResponse(asked.index, code)
        except RopewalkError as error:
            return ListOffsetsPartitionResponse(asked.index, code_for(error))
        except OSError as error:
            return ListOffsetsPartitionResponse(asked.index, code_for(StorageFailed(str(error))))
        return ListOffsetsPartitionResponse(
            asked.index,
            ErrorCode.NONE,
            timestamp,
            offset,
            partition.leader_epoch if offset >= 0 else -1,
        )

    return ListOffsetsResponse(
        topics=tuple(
            [
                ListOffsetsTopicResponse(
                    topic.name,
                    tuple(await asyncio.gather(*(answer(topic.name, asked) for asked in topic.partitions))),
                )
                for topic in request.topics
            ]
        )
    )


def _of_copy(
    topic: str, asked: ListOffsetsPartition, hosted: HostedPartitions
) -> ListOffsetsPartitionResponse:
    if asked.timestamp not in (EARLIEST, LATEST):
        return ListOffsetsPartitionResponse(asked.index, ErrorCode.INVALID_REQUEST)
    try:
        log = hosted.find_copy(topic, asked.index).log
    except RopewalkError as error:
        return ListOffsetsPartitionResponse(asked.index, code_for(error))
    offset = log.end_offset if asked.timestamp == LATEST else log.start_offset
    return ListOffsetsPartitionResponse(asked.index, ErrorCode.NONE, -1, offset, log.leader_epoch_latest)


async def _look_up(partition: Partition, timestamp: int, read_committed: bool, pool: Pool) -> tuple[int, int]:
    """Timestamp and offset as they are answered; -1 and -1 where there is nothing."""
    log = partition.log
    limit_offset = partition.last_stable_offset if read_committed else partition.high_watermark
    if timestamp == LATEST:
        return -1, limit_offset
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return -1, log.start_offset
    if timestamp == MAX_TIMESTAMP:
        found = await pool.run(partial(log.offset_of_max_timestamp, limit_offset=limit_offset))
    elif timestamp < 0:  # nothing is tiered, so nothing is the latest tiered or waits to be
        return -1, -1
    else:
        found = await pool.run(partial(log.offset_for_timestamp, timestamp, limit_offset=limit_offset))
    return (-1, -1) if found is None else (found.timestamp, found.offset)
