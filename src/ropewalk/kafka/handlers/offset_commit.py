"""OffsetCommit: store how far a group has read.

Behaviour worth knowing
    The answer comes when the offsets are as durable as a write with acks=all.
    A partition that does not exist is refused by itself; the others are stored. A caller who must not commit
    at all hears so for every partition.
    From v9 on a member may name its epoch (KIP-848), and a group that does not exist is GROUP_ID_NOT_FOUND.
    From v10 on topics are named by id.
"""

from typing import Final

from ropewalk.base.errors import RopewalkError, UnknownPartition
from ropewalk.base.ids import TopicId
from ropewalk.broker.coordinators.groups import Groups
from ropewalk.groups.commands import Commit, OffsetToCommit
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.metadata.image import Image
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

_EPOCHS_SINCE: Final = 9
_BY_ID_SINCE: Final = 10


async def handle(
    request: OffsetCommitRequest, caller: Caller, *, groups: Groups, image: Image
) -> OffsetCommitResponse:
    by_id = caller.version >= _BY_ID_SINCE
    wanted = [
        _wanted(topic, partition, image, by_id) for topic in request.topics for partition in topic.partitions
    ]
    command = Commit(
        group_id=request.group_id,
        offsets=tuple(each for each in wanted if isinstance(each, OffsetToCommit)),
        generation=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        instance_id=request.instance_id,
        speaks_epochs=caller.version >= _EPOCHS_SINCE,
    )
    try:
        committed = await groups.ask(request.group_id, command).answer
    except RopewalkError as error:
        return _respond(request, [code_for(error)] * len(wanted))
    outcomes = iter(committed.offsets)
    results: list[RopewalkError | None] = [
        next(outcomes) if isinstance(each, OffsetToCommit) else each for each in wanted
    ]
    return _respond(request, [ErrorCode.NONE if error is None else code_for(error) for error in results])


def _wanted(
    topic: OffsetCommitRequestTopic, partition: OffsetCommitRequestPartition, image: Image, by_id: bool
) -> OffsetToCommit | RopewalkError:
    try:
        found = image.topic_by_id(TopicId(topic.topic_id)) if by_id else image.topic(topic.name)
        if not 0 <= partition.index < len(found.partitions):
            raise UnknownPartition(f"{found.name} has no partition {partition.index}")
    except RopewalkError as error:
        return error
    return OffsetToCommit(
        topic=found.name,
        partition=partition.index,
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
    )


def _respond(request: OffsetCommitRequest, codes: list[ErrorCode]) -> OffsetCommitResponse:
    remaining = iter(codes)
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
                tuple(
                    OffsetCommitResponsePartition(partition.index, next(remaining))
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )
