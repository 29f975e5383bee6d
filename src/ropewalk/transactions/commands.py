"""What is asked of the coordinator. The doors build these; of versions of the protocol only the kind of transaction is left.

Whoever would be told `ConcurrentTransactions` may bring patience instead: the answer then comes when the former
transaction is finished, or when the patience has run out.
"""

from typing import Generic, TypeAlias, TypeVar

from ropewalk.base import state_machine
from ropewalk.base.ids import TopicPartition
from ropewalk.transactions.answers import (
    Ended,
    MarkersNoted,
    PartitionsAdded,
    ProducerIdWanted,
    ProducerInitialised,
    TransactionsDescribed,
    TransactionsListed,
    Unfinished,
)
from ropewalk.transactions.events import NO_EPOCH, NO_ID, VERSION_OWN_EPOCH

T_co = TypeVar("T_co", covariant=True)


class Command(state_machine.Command[T_co], Generic[T_co], frozen=True):
    """Of the coordinator of transactions."""


class InitProducer(Command[ProducerInitialised | ProducerIdWanted], frozen=True, gc=False):
    """A producer takes the transactional id. Fences whoever had it, and has its transaction aborted first."""

    transactional_id: str
    timeout_ms: int
    producer_id: int = NO_ID
    """With `producer_epoch`: who the producer has been, if it goes on after an error (KIP-360)."""
    producer_epoch: int = NO_EPOCH
    fresh_producer_id: int | None = None
    """One that nobody has. Bring it when `ProducerIdWanted` was answered; it may turn out not to be used."""
    patience_ms: int = 0


class AddPartitions(Command[PartitionsAdded], frozen=True):
    """Let the transaction write to these partitions, and begin it if none is under way."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]
    verify_only: bool = False
    """Add nothing: say of each partition whether the transaction has it."""
    version: int = VERSION_OWN_EPOCH
    """The kind that the client believes in: `VERSION_ORIGINAL` for AddPartitionsToTxn and AddOffsetsToTxn from clients."""
    patience_ms: int = 0


class EndTransaction(Command[Ended | ProducerIdWanted], frozen=True, gc=False):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    bumps_epoch: bool
    """Whether the producer goes on with another epoch: EndTxn from version 5 on."""
    fresh_producer_id: int | None = None
    """As for `InitProducer`."""


class ListUnfinished(Command[Unfinished], frozen=True, gc=False):
    """Prepared transactions that have no marker yet in some partition: those prepared after `after`, a serial number from
    an earlier answer of the same core, or 0 for all.
    """

    after: int = 0
    waits: bool = False
    """If there are none, be answered when there are. At most one caller of a shard should wait."""


class MarkersWritten(Command[MarkersNoted], frozen=True):
    """The markers of a prepared transaction are committed in these partitions, or the partitions are gone."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    """Of the markers, as `Finish` has it; so is `started_at_ms`."""
    started_at_ms: int
    partitions: tuple[TopicPartition, ...]


class DescribeTransactions(Command[TransactionsDescribed], frozen=True):
    transactional_ids: tuple[str, ...]


class ListTransactions(Command[TransactionsListed], frozen=True):
    """Those that meet every condition that is given."""

    states: tuple[str, ...] = ()
    """By the names of `TransactionState`; empty: any."""
    producer_ids: tuple[int, ...] = ()
    longer_than_ms: int = -1
    """Only transactions that are open and began longer ago; negative: all."""
    pattern: str | None = None
    """A regular expression for the whole transactional id, in RE2's syntax; None or empty: any."""


AnyCommand: TypeAlias = (
    InitProducer
    | AddPartitions
    | EndTransaction
    | ListUnfinished
    | MarkersWritten
    | DescribeTransactions
    | ListTransactions
)
