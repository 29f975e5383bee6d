"""DescribeTransactions: transactional ids as their coordinator knows them. Each id is answered or refused by itself."""

from typing import Protocol

from ropewalk.base.errors import RopewalkError
from ropewalk.broker.hosting.shard import Asked
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.transactions import commands
from ropewalk.transactions.answers import DescribedTransaction, TransactionsDescribed
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


class Transactions(Protocol):
    def ask(
        self, transactional_id: str, command: commands.Command[TransactionsDescribed]
    ) -> Asked[TransactionsDescribed]: ...


async def handle(
    request: DescribeTransactionsRequest, caller: Caller, *, transactions: Transactions
) -> DescribeTransactionsResponse:
    states: list[TransactionState] = []
    for transactional_id in dict.fromkeys(request.transactional_ids):
        await caller.next_item()
        states.append(await _describe(transactional_id, transactions))
    return DescribeTransactionsResponse(0, tuple(states))


async def _describe(transactional_id: str, transactions: Transactions) -> TransactionState:
    command = commands.DescribeTransactions((transactional_id,))
    try:
        answer = await transactions.ask(transactional_id, command).answer
    except RopewalkError as error:
        return _refused(transactional_id, error)
    (found,) = answer.transactions
    if not isinstance(found, DescribedTransaction):
        return _refused(transactional_id, found)
    topics: dict[str, list[int]] = {}
    for partition in found.partitions:
        topics.setdefault(partition.topic, []).append(partition.partition)
    return TransactionState(
        ErrorCode.NONE,
        transactional_id,
        found.state.value,
        found.timeout_ms,
        found.started_at_ms,
        found.producer_id,
        found.producer_epoch,
        tuple(TopicData(name, tuple(indexes)) for name, indexes in topics.items()),
    )


def _refused(transactional_id: str, error: RopewalkError) -> TransactionState:
    return TransactionState(code_for(error), transactional_id, "", 0, -1, -1, -1, ())
