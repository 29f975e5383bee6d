"""Guards of what is done to records: written, located, deleted, and who writes them.

Behaviour worth knowing
    Fetch decides inside its handler, since a session remembers what it was asked for (`broker/reading/fetch.py`).
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec import structs

from ropewalk.kafka.caller import Caller, Disconnect
from ropewalk.kafka.rights.needs import Guard
from ropewalk.kafka.rights.rights import Rights
from ropewalk.kafka.served import Handle
from ropewalk.security.access import Operation
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    delete_records,
    describe_producers,
    list_offsets,
    offset_for_leader_epoch,
)
from ropewalk.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ropewalk.wire.types import Message

_CODE: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def produce(request: ProduceRequest, caller: Caller, rights: Rights, handle: Handle) -> Message | None:
    code = _CODE
    if request.transactional_id is not None and not rights.transactional_id(
        caller, Operation.WRITE, request.transactional_id
    ):
        allowed: list[TopicProduceData] = []
        refused = list(request.topics)
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    else:
        allowed, refused = rights.split(caller, Operation.WRITE, request.topics)
    if not refused:
        return await handle(request, caller)
    answer: Message | None = ProduceResponse(())
    if allowed:
        answer = await handle(structs.replace(request, topics=tuple(allowed)), caller)
    if request.acks == 0 or answer is None:
        raise Disconnect("acks=0 to a topic that the client may not write to")
    assert isinstance(answer, ProduceResponse)
    return structs.replace(answer, topics=(*answer.topics, *[_unwritten(topic, code) for topic in refused]))


def _unwritten(topic: TopicProduceData, code: ErrorCode) -> TopicProduceResponse:
    return TopicProduceResponse(
        topic.name,
        topic.topic_id,
        tuple(
            PartitionProduceResponse(data.index, code, -1, error_message="not authorized to write")
            for data in topic.partitions
        ),
    )


def _by_topic(
    operation: Operation, refused: Callable[[Any], Message], empty: Message, answers: str = "topics"
) -> Guard:
    """Topics on which the operation is not allowed are refused, each partition by itself."""

    async def guard(request: Any, caller: Caller, rights: Rights, handle: Handle) -> Message | None:
        allowed, others = rights.split(caller, operation, request.topics)
        if operation is Operation.DELETE and not rights.deletion(caller):
            allowed, others = [], list(request.topics)
        if not others:
            return await handle(request, caller)
        answer: Message | None = empty
        if allowed:
            answer = await handle(structs.replace(request, topics=tuple(allowed)), caller)
        assert answer is not None, "it is always answered"
        return structs.replace(answer, **{answers: (*getattr(answer, answers), *map(refused, others))})

    return guard


LIST_OFFSETS: Final = _by_topic(
    Operation.DESCRIBE,
    lambda topic: list_offsets.ListOffsetsTopicResponse(
        topic.name,
        tuple(list_offsets.ListOffsetsPartitionResponse(each.index, _CODE) for each in topic.partitions),
    ),
    list_offsets.ListOffsetsResponse(),
)
OFFSET_FOR_LEADER_EPOCH: Final = _by_topic(
    Operation.DESCRIBE,
    lambda topic: offset_for_leader_epoch.OffsetForLeaderTopicResult(
        topic.name,
        tuple(offset_for_leader_epoch.EpochEndOffset(_CODE, each.index) for each in topic.partitions),
    ),
    offset_for_leader_epoch.OffsetForLeaderEpochResponse(0, ()),
)
DESCRIBE_PRODUCERS: Final = _by_topic(
    Operation.READ,
    lambda topic: describe_producers.TopicResponse(
        topic.name,
        tuple(describe_producers.PartitionResponse(index, _CODE) for index in topic.partition_indexes),
    ),
    describe_producers.DescribeProducersResponse(0, ()),
)
DELETE_RECORDS: Final = _by_topic(
    Operation.DELETE,
    lambda topic: delete_records.DeleteRecordsTopicResult(
        topic.name,
        tuple(
            delete_records.DeleteRecordsPartitionResult(each.index, -1, _CODE) for each in topic.partitions
        ),
    ),
    delete_records.DeleteRecordsResponse(0, ()),
)
