"""What the coordinator answers. Where an answer is about several things, it has one entry for each, in the order asked."""

from typing import TypeAlias

from msgspec import Struct

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.transactions.errors import TransactionError
from ropewalk.transactions.events import TransactionState


class ProducerIdWanted(Struct, frozen=True, gc=False):
    """Nothing has changed: ask again with a producer id that nobody has."""


class ProducerInitialised(Struct, frozen=True, gc=False):
    producer_id: int
    producer_epoch: int


class PartitionsAdded(Struct, frozen=True):
    """Added or, if only asked about, found in the transaction; what is wrong with a partition is in its place."""

    partitions: tuple[RopewalkError | None, ...]


class Ended(Struct, frozen=True, gc=False):
    """The outcome is decided and will be carried out. The producer goes on as this, once the transaction is finished."""

    producer_id: int
    producer_epoch: int


class Finish(Struct, frozen=True):
    """A prepared transaction: write these markers."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    """Of the markers."""
    committed: bool
    partitions: tuple[TopicPartition, ...]
    """Where a marker is still to be written."""
    version: int
    started_at_ms: int
    """Tells it from the next one of the same producer, where an epoch stays from one to the next."""


class Unfinished(Struct, frozen=True):
    transactions: tuple[Finish, ...]
    serial: int
    """For `ListUnfinished.after`: the next answer then leaves out what is in this one."""


class MarkersNoted(Struct, frozen=True, gc=False):
    """Also if they belong to no transaction that is prepared: whoever wrote them was late, or has asked twice."""

    is_finished: bool
    """Whether that was the last of them, and the transaction is complete."""


class DescribedTransaction(Struct, frozen=True):
    transactional_id: str
    state: TransactionState
    timeout_ms: int
    started_at_ms: int
    """-1 if the producer has not begun a transaction."""
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]


class TransactionsDescribed(Struct, frozen=True):
    transactions: tuple[DescribedTransaction | TransactionError, ...]


class ListedTransaction(Struct, frozen=True, gc=False):
    transactional_id: str
    producer_id: int
    state: TransactionState


class TransactionsListed(Struct, frozen=True):
    transactions: tuple[ListedTransaction, ...]
    unknown_states: tuple[str, ...]
    """Names among the wanted states that no state has."""


Answer: TypeAlias = (
    ProducerIdWanted
    | ProducerInitialised
    | PartitionsAdded
    | Ended
    | Unfinished
    | MarkersNoted
    | TransactionsDescribed
    | TransactionsListed
)
