"""OffsetForLeaderEpoch: where an epoch ended, so that a client can tell whether its log was cut.

Behaviour worth knowing
    The answer is the largest epoch not above the one asked for and its end; -1 and -1 if there is none.
    The end of the last epoch is that of the log, as in Kafka, even where consumers may not read that far yet: a new leader learns
    what is committed only from its followers, and one that told of less would make consumers believe that records are lost.
"""

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import LeaderEpoch
from ropewalk.broker.partitions.hosted_partitions import HostedPartitions
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


async def handle(
    request: OffsetForLeaderEpochRequest, caller: Caller, *, hosted: HostedPartitions
) -> OffsetForLeaderEpochResponse:
    del caller
    return OffsetForLeaderEpochResponse(
        throttle_ms=0,
        topics=tuple(
            OffsetForLeaderTopicResult(
                topic.name, tuple([_answer(topic.name, asked, hosted) for asked in topic.partitions])
            )
            for topic in request.topics
        ),
    )


def _answer(topic: str, asked: OffsetForLeaderPartition, hosted: HostedPartitions) -> EpochEndOffset:
    try:
        partition = hosted.find(topic, asked.index)
        partition.check_epoch(asked.current_leader_epoch)
    except RopewalkError as error:
        return EpochEndOffset(code_for(error), asked.index)
    if asked.leader_epoch == partition.leader_epoch:
        return EpochEndOffset(ErrorCode.NONE, asked.index, partition.leader_epoch, partition.log.end_offset)
    end = partition.log.end_offset_for_epoch(LeaderEpoch(asked.leader_epoch))
    if end is None:
        return EpochEndOffset(ErrorCode.NONE, asked.index)
    return EpochEndOffset(ErrorCode.NONE, asked.index, end.leader_epoch, end.end_offset)
