"""OffsetFetch: how far groups have read.

Behaviour worth knowing
    A partition that the group has committed nothing of has offset -1, which is not an error and not 0.
    Up to v7 there is one group; v8 asks about many at once, and each has its own error.
    From v10 on topics are named by id; what a group has committed of a topic that is gone is left out.
    With `require_stable` (v7) a partition whose offset an open transaction may be about to change is refused by itself:
    the client asks again, and so never reads twice what the transaction has read.
"""

from collections.abc import Iterable
from typing import Final

from ropewalk.base.errors import RopewalkError, UnknownTopicId
from ropewalk.base.ids import TopicId, TopicPartition
from ropewalk.broker.coordinators.groups import Groups
from ropewalk.broker.hosting.shard import Asked
from ropewalk.groups.answers import CommittedOffset, OffsetsFetched
from ropewalk.groups.commands import FetchOffsets
from ropewalk.groups.errors import UnstableOffset
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.metadata.image import Image
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from ropewalk.wire.types import UUID_ZERO

_WHOLE_ERROR_SINCE: Final = 2
_MANY_SINCE: Final = 8
_BY_ID_SINCE: Final = 10
_NOTHING: Final = CommittedOffset(offset=-1, leader_epoch=-1, metadata="", committed_at_ms=-1)


async def handle(
    request: OffsetFetchRequest, caller: Caller, *, groups: Groups, image: Image
) -> OffsetFetchResponse:
    by_id = caller.version >= _BY_ID_SINCE
    if caller.version >= _MANY_SINCE:
        asked = [_ask(group, groups, image, by_id, request.require_stable) for group in request.groups]
        return OffsetFetchResponse(
            groups=tuple(
                [
                    await _answer(group, answer, image, by_id)
                    for group, answer in zip(request.groups, asked, strict=True)
                ]
            )
        )
    topics = None
    if request.topics is not None:
        topics = tuple(
            OffsetFetchRequestTopics(topic.name, UUID_ZERO, topic.partition_indexes)
            for topic in request.topics
        )
    group = OffsetFetchRequestGroup(request.group_id, topics=topics)
    answer = await _answer(group, _ask(group, groups, image, by_id, request.require_stable), image, by_id)
    return _single(answer, request, caller.version)


def _ask(
    group: OffsetFetchRequestGroup, groups: Groups, image: Image, by_id: bool, require_stable: bool
) -> Asked[OffsetsFetched] | RopewalkError:
    partitions = None
    if group.topics is not None:
        partitions = tuple(
            TopicPartition(name, index)
            for topic in group.topics
            if (name := _name(topic, image, by_id)) is not None
            for index in topic.partition_indexes
        )
    try:
        command = FetchOffsets(
            group.group_id, partitions, require_stable, group.member_id, group.member_epoch
        )
        return groups.ask(group.group_id, command)
    except RopewalkError as error:
        return error


async def _answer(
    group: OffsetFetchRequestGroup, asked: Asked[OffsetsFetched] | RopewalkError, image: Image, by_id: bool
) -> OffsetFetchResponseGroup:
    if isinstance(asked, RopewalkError):
        return OffsetFetchResponseGroup(group.group_id, (), code_for(asked))
    try:
        fetched = await asked.answer
    except RopewalkError as error:
        return OffsetFetchResponseGroup(group.group_id, (), code_for(error))
    found = {each.topic_partition: each.committed for each in fetched.offsets}
    if group.topics is None:
        return OffsetFetchResponseGroup(group.group_id, tuple(_all(found, image, by_id)))
    return OffsetFetchResponseGroup(
        group.group_id, tuple(_asked_for(topic, found, image, by_id) for topic in group.topics)
    )


def _asked_for(
    topic: OffsetFetchRequestTopics,
    found: dict[TopicPartition, CommittedOffset | UnstableOffset | None],
    image: Image,
    by_id: bool,
) -> OffsetFetchResponseTopics:
    name = _name(topic, image, by_id)
    if name is None:
        unknown = ErrorCode.UNKNOWN_TOPIC_ID
        partitions = tuple(_partition(index, None, unknown) for index in topic.partition_indexes)
    else:
        partitions = tuple(
            _partition(index, found[TopicPartition(name, index)]) for index in topic.partition_indexes
        )
    return OffsetFetchResponseTopics(topic.name, topic.topic_id, partitions)


def _all(
    found: dict[TopicPartition, CommittedOffset | UnstableOffset | None], image: Image, by_id: bool
) -> Iterable[OffsetFetchResponseTopics]:
    by_topic: dict[str, list[OffsetFetchResponsePartitions]] = {}
    for partition, committed in found.items():
        by_topic.setdefault(partition.topic, []).append(_partition(partition.partition, committed))
    for name, partitions in by_topic.items():
        topic = image.topics.get(name)
        if topic is not None or not by_id:
            topic_id = UUID_ZERO if topic is None else topic.topic_id
            yield OffsetFetchResponseTopics(name, topic_id, tuple(partitions))


def _partition(
    index: int, committed: CommittedOffset | UnstableOffset | None, error_code: ErrorCode = ErrorCode.NONE
) -> OffsetFetchResponsePartitions:
    if isinstance(committed, UnstableOffset):
        return _partition(index, None, code_for(committed))
    known = committed or _NOTHING
    return OffsetFetchResponsePartitions(index, known.offset, known.leader_epoch, known.metadata, error_code)


def _name(topic: OffsetFetchRequestTopics, image: Image, by_id: bool) -> str | None:
    """None for an id that no topic has."""
    if not by_id:
        return topic.name
    try:
        return image.topic_by_id(TopicId(topic.topic_id)).name
    except UnknownTopicId:
        return None


def _single(
    answer: OffsetFetchResponseGroup, request: OffsetFetchRequest, version: int
) -> OffsetFetchResponse:
    """The layout up to v7; v1 has no place for an error but the partitions."""
    topics = tuple(
        OffsetFetchResponseTopic(
            topic.name,
            tuple(
                OffsetFetchResponsePartition(
                    partition.index,
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    partition.metadata,
                    partition.error_code,
                )
                for partition in topic.partitions
            ),
        )
        for topic in answer.topics
    )
    if answer.error_code and version < _WHOLE_ERROR_SINCE:
        topics = tuple(
            OffsetFetchResponseTopic(
                topic.name,
                tuple(
                    OffsetFetchResponsePartition(index, -1, error_code=answer.error_code)
                    for index in topic.partition_indexes
                ),
            )
            for topic in request.topics or ()
        )
    return OffsetFetchResponse(topics=topics, error_code=answer.error_code)
