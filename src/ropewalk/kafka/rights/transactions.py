"""Guards of producers' ids and of transactions."""

from typing import Final

from msgspec import structs

from ropewalk.kafka.caller import Caller
from ropewalk.kafka.rights.rights import Rights
from ropewalk.kafka.served import Handle
from ropewalk.security.access import Operation
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ropewalk.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from ropewalk.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from ropewalk.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from ropewalk.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ropewalk.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ropewalk.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from ropewalk.wire.types import Message

_CODE: Final = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
_FROM_LEADERS_SINCE: Final = 4


async def init_producer_id(
    request: InitProducerIdRequest, caller: Caller, rights: Rights, handle: Handle
) -> Message | None:
    if request.transactional_id is not None:
        if not rights.transactional_id(caller, Operation.WRITE, request.transactional_id):
            return InitProducerIdResponse(0, _CODE, -1, -1)
    elif not rights.cluster(caller, Operation.IDEMPOTENT_WRITE) and not rights.any_topic(
        caller, Operation.WRITE
    ):
        return InitProducerIdResponse(0, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, -1, -1)
    return await handle(request, caller)


async def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, caller: Caller, rights: Rights, handle: Handle
) -> Message | None:
    if caller.version >= _FROM_LEADERS_SINCE:
        return await handle(request, caller)  # refused to every client
    topics = request.v3_and_below_topics
    if not rights.transactional_id(caller, Operation.WRITE, request.v3_and_below_transactional_id):
        codes = {topic.name: _CODE for topic in topics}
    else:
        _, refused = rights.split(caller, Operation.WRITE, topics)
        if not refused:
            return await handle(request, caller)
        codes = {topic.name: ErrorCode.OPERATION_NOT_ATTEMPTED for topic in topics}
        codes.update((topic.name, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for topic in refused)
    return AddPartitionsToTxnResponse(
        0,
        results_by_topic_v3_and_below=tuple(
            AddPartitionsToTxnTopicResult(
                topic.name,
                tuple(
                    AddPartitionsToTxnPartitionResult(index, codes[topic.name]) for index in topic.partitions
                ),
            )
            for topic in topics
        ),
    )


async def add_offsets_to_txn(
    request: AddOffsetsToTxnRequest, caller: Caller, rights: Rights, handle: Handle
) -> Message | None:
    if not rights.transactional_id(caller, Operation.WRITE, request.transactional_id):
        return AddOffsetsToTxnResponse(0, _CODE)
    if not rights.group(caller, Operation.READ, request.group_id):
        return AddOffsetsToTxnResponse(0, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return await handle(request, caller)


async def txn_offset_commit(
    request: TxnOffsetCommitRequest, caller: Caller, rights: Rights, handle: Handle
) -> Message | None:
    allowed: list[TxnOffsetCommitRequestTopic] = []
    refused = list(request.topics)
    if not rights.transactional_id(caller, Operation.WRITE, request.transactional_id):
        code = _CODE
    elif not rights.group(caller, Operation.READ, request.group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    else:
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        allowed, refused = rights.split(caller, Operation.READ, request.topics)
        if not refused:
            return await handle(request, caller)
    answer: Message | None = TxnOffsetCommitResponse(0, ())
    if allowed:
        answer = await handle(structs.replace(request, topics=tuple(allowed)), caller)
    assert isinstance(answer, TxnOffsetCommitResponse)
    refusals = [
        TxnOffsetCommitResponseTopic(
            topic.name,
            topic.topic_id,
            tuple(TxnOffsetCommitResponsePartition(each.index, code) for each in topic.partitions),
        )
        for topic in refused
    ]
    return structs.replace(answer, topics=(*answer.topics, *refusals))


async def end_txn(request: EndTxnRequest, caller: Caller, rights: Rights, handle: Handle) -> Message | None:
    if not rights.transactional_id(caller, Operation.WRITE, request.transactional_id):
        return EndTxnResponse(0, _CODE)
    return await handle(request, caller)


async def describe_transactions(
    request: DescribeTransactionsRequest, caller: Caller, rights: Rights, handle: Handle
) -> Message | None:
    refused = {
        each: None
        for each in request.transactional_ids
        if not rights.transactional_id(caller, Operation.DESCRIBE, each)
    }
    allowed = tuple(each for each in request.transactional_ids if each not in refused)
    answer = await handle(structs.replace(request, transactional_ids=allowed), caller)
    assert isinstance(answer, DescribeTransactionsResponse)
    described = [
        structs.replace(
            state,
            topics=tuple(
                topic for topic in state.topics if rights.topic(caller, Operation.DESCRIBE, topic.name)
            ),
        )
        for state in answer.transaction_states
    ]
    refusals = [TransactionState(_CODE, each, "", 0, -1, -1, -1, ()) for each in refused]
    return structs.replace(answer, transaction_states=(*described, *refusals))


async def list_transactions(
    request: ListTransactionsRequest, caller: Caller, rights: Rights, handle: Handle
) -> Message | None:
    answer = await handle(request, caller)
    assert isinstance(answer, ListTransactionsResponse)
    listed = [
        each
        for each in answer.transaction_states
        if rights.transactional_id(caller, Operation.DESCRIBE, each.transactional_id)
    ]
    return structs.replace(answer, transaction_states=tuple(listed))
