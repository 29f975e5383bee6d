"""ListTransactions: the transactional ids that this broker looks after.

Behaviour worth knowing
    While a shard is being loaded the answer says so instead of leaving ids out.
    States that do not exist match nothing and are named in the answer.
"""

from typing import Protocol

from ropewalk.base.errors import RopewalkError
from ropewalk.broker.hosting.shard import Asked
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.transactions import commands
from ropewalk.transactions.answers import TransactionsListed
from ropewalk.transactions.events import TransactionState as State
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

_STATES = frozenset(state.value for state in State)


class Transactions(Protocol):
    def ask_all(self, command: commands.Command[TransactionsListed]) -> list[Asked[TransactionsListed]]: ...


async def handle(
    request: ListTransactionsRequest, caller: Caller, *, transactions: Transactions
) -> ListTransactionsResponse:
    del caller
    command = commands.ListTransactions(
        states=request.state_filters,
        producer_ids=request.producer_id_filters,
        longer_than_ms=request.duration_filter,
        pattern=request.transactional_id_pattern,
    )
    listed: list[TransactionState] = []
    try:
        for asked in transactions.ask_all(command):
            answer = await asked.answer
            listed += [
                TransactionState(each.transactional_id, each.producer_id, each.state.value)
                for each in answer.transactions
            ]
    except RopewalkError as error:
        return ListTransactionsResponse(0, code_for(error))
    unknown = tuple(name for name in dict.fromkeys(request.state_filters) if name not in _STATES)
    return ListTransactionsResponse(0, ErrorCode.NONE, unknown, tuple(listed))
