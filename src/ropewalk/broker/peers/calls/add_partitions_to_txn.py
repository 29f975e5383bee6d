"""AddPartitionsToTxn, as nodes ask it of coordinators: transactions that are to write to partitions, many in one request.

What a reader could get wrong
    Patience does not travel: an answer that waited for one transaction would delay those of all others.
"""

from collections.abc import Sequence
from typing import Final

from ropewalk.base import errors
from ropewalk.base.errors import RopewalkError, ShardUnavailable
from ropewalk.base.ids import TopicPartition
from ropewalk.broker.peers.calls.call import Call, call
from ropewalk.broker.peers.calls.refusals import Refusals
from ropewalk.broker.peers.peers import Lane
from ropewalk.client.errors import RemoteError
from ropewalk.transactions import errors as transactions
from ropewalk.transactions.answers import PartitionsAdded
from ropewalk.transactions.commands import AddPartitions
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import add_partitions_to_txn as wire

_REFUSALS: Final = Refusals(
    transactions.UnknownProducerMapping,
    transactions.TransactionalProducerFenced,
    transactions.ConcurrentTransactions,
    transactions.NotInTransaction,
    transactions.WrongTransactionState,
    errors.ShardElsewhere,
    errors.ShardLoading,
    errors.ShardUnavailable,
    errors.UnknownPartition,
)


def add_partitions(commands: Sequence[AddPartitions]) -> Call[list[PartitionsAdded]]:
    """One answer for each command. Raises where the coordinator refuses the request as a whole."""
    request = wire.AddPartitionsToTxnRequest(tuple(map(_transaction, commands)))

    def understand(response: wire.AddPartitionsToTxnResponse) -> list[PartitionsAdded]:
        if response.error_code:
            raise _error(response.error_code)
        codes: dict[str, dict[TopicPartition, int]] = {}
        for result in response.results_by_transaction:
            found = codes.setdefault(result.transactional_id, {})
            for topic in result.topic_results:
                for partition in topic.results_by_partition:
                    found[TopicPartition(topic.name, partition.index)] = partition.partition_error_code
        return [_added(each, codes.get(each.transactional_id, {})) for each in commands]

    return call(wire.API, request, understand, lane=Lane.TRANSACTIONS)


def _transaction(command: AddPartitions) -> wire.AddPartitionsToTxnTransaction:
    topics: dict[str, list[int]] = {}
    for partition in command.partitions:
        topics.setdefault(partition.topic, []).append(partition.partition)
    return wire.AddPartitionsToTxnTransaction(
        command.transactional_id,
        command.producer_id,
        command.producer_epoch,
        command.verify_only,
        tuple(wire.AddPartitionsToTxnTopic(name, tuple(indexes)) for name, indexes in topics.items()),
    )


def _added(command: AddPartitions, codes: dict[TopicPartition, int]) -> PartitionsAdded:
    """What was not answered was not done, as far as anybody can say."""
    return PartitionsAdded(
        tuple(
            _error(code) if (code := codes.get(partition, ErrorCode.UNKNOWN_SERVER_ERROR)) else None
            for partition in command.partitions
        )
    )


def _error(code: int) -> RopewalkError:
    remote = RemoteError(code)
    error = _REFUSALS.error(remote)
    return ShardUnavailable(str(remote)) if error is remote else error
