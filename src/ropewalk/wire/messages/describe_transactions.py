"""DescribeTransactions (key 65): transactional ids as their coordinator knows them. There is one version."""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Int64, Message


class DescribeTransactionsRequest(Message, frozen=True):
    transactional_ids: tuple[str, ...]


class TopicData(Message, frozen=True):
    name: str
    partitions: tuple[Int32, ...]


class TransactionState(Message, frozen=True):
    error_code: Int16
    transactional_id: str
    transaction_state: str
    transaction_timeout_ms: Int32
    transaction_start_time_ms: Int64
    producer_id: Int64
    producer_epoch: Int16
    topics: tuple[TopicData, ...]


class DescribeTransactionsResponse(Message, frozen=True):
    throttle_ms: Int32
    transaction_states: tuple[TransactionState, ...]


API: Final = Api(
    key=65,
    name="DescribeTransactions",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=DescribeTransactionsRequest,
    response=DescribeTransactionsResponse,
)
