"""ListTransactions (key 66): the transactional ids that a broker coordinates.

v1  only those that have run for some time
v2  only those whose id matches an expression
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Int64, Message, since


class ListTransactionsRequest(Message, frozen=True):
    state_filters: tuple[str, ...]
    producer_id_filters: tuple[Int64, ...]
    duration_filter: Annotated[Int64, since(1)] = -1
    """In milliseconds; negative: however long."""
    transactional_id_pattern: Annotated[str | None, since(2)] = None


class TransactionState(Message, frozen=True):
    transactional_id: str
    producer_id: Int64
    transaction_state: str


class ListTransactionsResponse(Message, frozen=True):
    throttle_ms: Int32
    error_code: Int16
    unknown_state_filters: tuple[str, ...] = ()
    transaction_states: tuple[TransactionState, ...] = ()


API: Final = Api(
    key=66,
    name="ListTransactions",
    versions=range(0, 2 + 1),
    flexible_since=0,
    request=ListTransactionsRequest,
    response=ListTransactionsResponse,
)
