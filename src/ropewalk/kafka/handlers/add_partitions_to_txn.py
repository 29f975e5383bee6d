"""AddPartitionsToTxn: a transaction is about to write to these partitions.

Behaviour worth knowing
    Up to v3 it comes from producers, before they write. From v4 on it comes from the leaders of partitions, for many transactions at
    once, which may only want to know whether a partition has been added; on a client's listener that is refused.
    A partition that does not exist fails its transaction as a whole: the others are OPERATION_NOT_ATTEMPTED. So does one of a topic that the
    cluster keeps for itself, though nodes add those of groups' offsets.
    A producer that goes on at once waits a little for its former transaction to be finished. A leader does not: others would wait with it.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.base.limits import TRANSACTION_PATIENCE_MS
from ropewalk.broker.hosting.shard import Asked
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.fencing import code_for_producer
from ropewalk.metadata.image import Image
from ropewalk.metadata.internal_topics import NODES_TOPICS, OFFSETS_TOPIC
from ropewalk.transactions.answers import PartitionsAdded
from ropewalk.transactions.commands import AddPartitions, Command
from ropewalk.transactions.events import VERSION_ORIGINAL, VERSION_OWN_EPOCH
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.add_partitions_to_txn import (
    API,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
)

_FROM_LEADERS_SINCE: Final = 4
_NOBODYS_TO_WRITE: Final = NODES_TOPICS - {OFFSETS_TOPIC}


class Transactions(Protocol):
    def ask(self, transactional_id: str, command: Command[PartitionsAdded]) -> Asked[PartitionsAdded]: ...


async def handle(
    request: AddPartitionsToTxnRequest, caller: Caller, *, transactions: Transactions, image: Image
) -> AddPartitionsToTxnResponse:
    """For producers."""
    if caller.version >= _FROM_LEADERS_SINCE:
        return AddPartitionsToTxnResponse(0, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    topics = request.v3_and_below_topics
    command = AddPartitions(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        partitions=_places(topics),
        version=VERSION_ORIGINAL,
        patience_ms=TRANSACTION_PATIENCE_MS,
    )
    begun = _begin(command, transactions, image, NODES_TOPICS)
    codes = await _codes(begun, command.partitions, caller.version)
    return AddPartitionsToTxnResponse(0, results_by_topic_v3_and_below=_results(topics, codes))


async def handle_for_leaders(
    request: AddPartitionsToTxnRequest, caller: Caller, *, transactions: Transactions, image: Image
) -> AddPartitionsToTxnResponse:
    """For other nodes. All of it takes effect before the first wait."""
    commands = [
        AddPartitions(
            transactional_id=each.transactional_id,
            producer_id=each.producer_id,
            producer_epoch=each.producer_epoch,
            partitions=_places(each.topics),
            verify_only=each.verify_only,
            version=VERSION_OWN_EPOCH,
        )
        for each in request.transactions
    ]
    begun = [_begin(command, transactions, image, _NOBODYS_TO_WRITE) for command in commands]
    results: list[AddPartitionsToTxnResult] = []
    for asked, command, outcome in zip(request.transactions, commands, begun, strict=True):
        codes = await _codes(outcome, command.partitions, caller.version)
        results.append(AddPartitionsToTxnResult(asked.transactional_id, _results(asked.topics, codes)))
    return AddPartitionsToTxnResponse(0, results_by_transaction=tuple(results))


_Begun = Asked[PartitionsAdded] | RopewalkError | dict[TopicPartition, ErrorCode]


def _begin(
    command: AddPartitions, transactions: Transactions, image: Image, barred: frozenset[str]
) -> _Begun:
    refused = {
        partition: code
        for partition in command.partitions
        if (code := _refusal(partition, image, barred)) is not ErrorCode.NONE
    }
    if refused:
        return {
            partition: refused.get(partition, ErrorCode.OPERATION_NOT_ATTEMPTED)
            for partition in command.partitions
        }
    try:
        return transactions.ask(command.transactional_id, command)
    except RopewalkError as error:
        return error


async def _codes(
    begun: _Begun, partitions: Sequence[TopicPartition], version: int
) -> dict[TopicPartition, ErrorCode]:
    if isinstance(begun, dict):
        return begun
    try:
        if isinstance(begun, RopewalkError):
            raise begun
        added = await begun.answer
    except RopewalkError as error:
        return dict.fromkeys(partitions, code_for_producer(error, API.key, version))
    return {
        partition: ErrorCode.NONE if error is None else code_for_producer(error, API.key, version)
        for partition, error in zip(partitions, added.partitions, strict=True)
    }


def _refusal(partition: TopicPartition, image: Image, barred: frozenset[str]) -> ErrorCode:
    if partition.topic in barred:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = image.topics.get(partition.topic)
    if topic is None or not 0 <= partition.partition < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def _places(topics: Sequence[AddPartitionsToTxnTopic]) -> tuple[TopicPartition, ...]:
    return tuple(
        dict.fromkeys(TopicPartition(topic.name, index) for topic in topics for index in topic.partitions)
    )


def _results(
    topics: Sequence[AddPartitionsToTxnTopic], codes: dict[TopicPartition, ErrorCode]
) -> tuple[AddPartitionsToTxnTopicResult, ...]:
    return tuple(
        AddPartitionsToTxnTopicResult(
            topic.name,
            tuple(
                AddPartitionsToTxnPartitionResult(index, codes[TopicPartition(topic.name, index)])
                for index in topic.partitions
            ),
        )
        for topic in topics
    )
