"""The durable facts about transactional ids. Each replaces what was known about the same id, so a log can be compacted."""

from enum import Enum
from typing import Final, TypeAlias

from msgspec import Struct

from ropewalk.base.ids import TopicPartition

NO_ID: Final = -1
"""No producer id."""
NO_EPOCH: Final = -1
"""No producer epoch."""
NEVER_MS: Final = -1
"""No such moment."""

VERSION_ORIGINAL: Final = 0
"""Transactions whose epoch stays from one to the next; partitions are added before they are written to."""
VERSION_OWN_EPOCH: Final = 2
"""Transactions that each have an epoch of their own (KIP-890); the first write to a partition adds it."""


class TransactionState(Enum):
    """By the names that tools print. The two that are never recorded exist because tools may ask for them."""

    EMPTY = "Empty"
    """A producer has the id and has not begun."""
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    """It will be committed, whatever happens; markers are being written."""
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    """Kafka's name for an id that is being forgotten. Here that is one event, with nothing in between."""
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    """Kafka's name for a producer that is being fenced before its transaction is aborted. Here that is one event, too."""

    @property
    def is_prepared(self) -> bool:
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_open(self) -> bool:
        """There is a transaction, and it is not finished."""
        return self is TransactionState.ONGOING or self.is_prepared


class TransactionRecorded(Struct, frozen=True):
    """All that is known about one transactional id."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    """Of a prepared transaction: the epoch of its markers."""
    state: TransactionState
    timeout_ms: int
    partitions: tuple[TopicPartition, ...]
    """What the transaction has written to or may have, in order; empty unless it is open."""
    started_at_ms: int
    """When the transaction began; `NEVER_MS` if there has been none since the producer began."""
    updated_at_ms: int
    version: int
    """The kind of the transaction; `VERSION_OWN_EPOCH` for one that the coordinator aborts, whoever began it."""
    previous_producer_id: int = NO_ID
    """The producer id before this change; the same as now except where an epoch had run out."""
    next_producer_id: int = NO_ID
    """What the producer goes on with, at epoch 0, when this prepared transaction is finished."""
    previous_epoch: int = NO_EPOCH
    """The epoch whose holder was given the current one, perhaps without hearing of it, and may ask again."""


class TransactionalIdRemoved(Struct, frozen=True, gc=False):
    transactional_id: str


Event: TypeAlias = TransactionRecorded | TransactionalIdRemoved
