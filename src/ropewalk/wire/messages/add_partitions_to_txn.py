"""AddPartitionsToTxn (key 24): a producer says which partitions its transaction will write to.

v3  flexible encoding
v4  between brokers only: many transactions at once, and `verify_only` to ask without adding
v5  errors may say that a transaction can be aborted

Clients send up to v3, in which the fields of the one transaction are the request's own. A producer of the second
kind of transaction does not send it at all: the first Produce adds the partition.
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Int64, Message, since, until


class AddPartitionsToTxnTopic(Message, frozen=True):
    name: str
    partitions: tuple[Int32, ...]


class AddPartitionsToTxnTransaction(Message, frozen=True):
    transactional_id: str
    producer_id: Int64
    producer_epoch: Int16
    verify_only: bool = False
    topics: tuple[AddPartitionsToTxnTopic, ...] = ()


class AddPartitionsToTxnRequest(Message, frozen=True):
    transactions: Annotated[tuple[AddPartitionsToTxnTransaction, ...], since(4)] = ()
    v3_and_below_transactional_id: Annotated[str, until(3)] = ""
    v3_and_below_producer_id: Annotated[Int64, until(3)] = 0
    v3_and_below_producer_epoch: Annotated[Int16, until(3)] = 0
    v3_and_below_topics: Annotated[tuple[AddPartitionsToTxnTopic, ...], until(3)] = ()


class AddPartitionsToTxnPartitionResult(Message, frozen=True):
    index: Int32
    partition_error_code: Int16


class AddPartitionsToTxnTopicResult(Message, frozen=True):
    name: str
    results_by_partition: tuple[AddPartitionsToTxnPartitionResult, ...]


class AddPartitionsToTxnResult(Message, frozen=True):
    transactional_id: str
    topic_results: tuple[AddPartitionsToTxnTopicResult, ...]


class AddPartitionsToTxnResponse(Message, frozen=True):
    throttle_ms: Int32
    error_code: Annotated[Int16, since(4)] = 0
    results_by_transaction: Annotated[tuple[AddPartitionsToTxnResult, ...], since(4)] = ()
    results_by_topic_v3_and_below: Annotated[tuple[AddPartitionsToTxnTopicResult, ...], until(3)] = ()


API: Final = Api(
    key=24,
    name="AddPartitionsToTxn",
    versions=range(0, 5 + 1),
    flexible_since=3,
    request=AddPartitionsToTxnRequest,
    response=AddPartitionsToTxnResponse,
)
