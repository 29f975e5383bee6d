"""What clients of transactions asked and were told: the evidence of `checker`.

Events stand in the order in which they happened. An *operation* is whatever a client does as one: a transaction with everything
that is sent, read and committed in it, or a single send or poll outside of one. Every value is written by one operation
to one partition and is a number of its own, so that whoever reads it knows where it comes from.
"""

from enum import Enum
from typing import Final

from msgspec import Struct

from ropewalk.base.ids import TopicPartition

NO_COMMIT: Final = -1
"""What was seen where nothing is committed."""

FORGED_COMMIT: Final = -2
"""An offset came back with metadata that nobody gave it, or with a number it was not committed with."""


class Outcome(Enum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    """For certain: nobody may ever see anything of it."""
    UNKNOWN = "unknown"


class Began(Struct, frozen=True):
    operation: int
    process: str
    is_transactional: bool


class Sent(Struct, frozen=True):
    """Asked to write these values, once each, however often it takes to send them."""

    operation: int
    partition: TopicPartition
    values: tuple[int, ...]
    sources: tuple[tuple[str, TopicPartition, int], ...] = ()
    """For each value the group, partition and offset of the record it was made from; empty for values made from nothing."""


class Placed(Struct, frozen=True):
    """The leader said where the values stand."""

    operation: int
    partition: TopicPartition
    base_offset: int
    values: tuple[int, ...]


class Positioned(Struct, frozen=True):
    """A consumer chose, or was assigned, where it goes on reading; what it read of the partition before counts no more."""

    process: str
    partition: TopicPartition
    offset: int


class Polled(Struct, frozen=True):
    """A consumer was given records, as (offset, value), in the order in which it got them."""

    operation: int
    process: str
    partition: TopicPartition
    records: tuple[tuple[int, int], ...]
    is_committed_only: bool
    stable_offset: int
    """The last stable offset as the answer told it."""


class OffsetsSent(Struct, frozen=True):
    """Offsets were handed in, in a transaction or as the operation itself."""

    operation: int
    commit: int
    group: str
    offsets: tuple[tuple[TopicPartition, int], ...]


class OffsetSeen(Struct, frozen=True):
    """Somebody was told what is committed. `is_stable`: it had asked for nothing that a transaction may still change."""

    began: int
    group: str
    partition: TopicPartition
    offset: int
    commit: int
    is_stable: bool


class EndAsked(Struct, frozen=True):
    """The client is about to ask for the transaction's end; said before the first attempt."""

    operation: int
    is_commit: bool


class Ended(Struct, frozen=True):
    """The operation is over for its client. One of which this is never said has an unknown outcome."""

    operation: int
    outcome: Outcome


class Batch(Struct, frozen=True):
    """One batch of a log; `is_commit` is None for anything but a transaction's marker."""

    offset: int
    end_offset: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    is_commit: bool | None = None


class FinalRead(Struct, frozen=True):
    """After everything was healed: a whole partition, as somebody sees it who reads everything, or only what is committed."""

    partition: TopicPartition
    records: tuple[tuple[int, int], ...]
    is_committed_only: bool


class FinalLog(Struct, frozen=True):
    """After everything was healed: the batches of a partition, and up to where it is stable."""

    partition: TopicPartition
    batches: tuple[Batch, ...]
    stable_offset: int
    end_offset: int


Event = (
    Began
    | Sent
    | Placed
    | Positioned
    | Polled
    | OffsetsSent
    | OffsetSeen
    | EndAsked
    | Ended
    | FinalRead
    | FinalLog
)


class EosJournal:
    """The history while it is being made."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._operation_count = 0
        self._commit_count = 0

    @property
    def now(self) -> int:
        return len(self.events)

    def note(self, event: Event) -> None:
        self.events.append(event)

    def begin(self, process: str, *, is_transactional: bool) -> int:
        self._operation_count += 1
        self.note(Began(self._operation_count, process, is_transactional))
        return self._operation_count

    def next_commit(self) -> int:
        self._commit_count += 1
        return self._commit_count
