"""Permission to begin a transaction in a partition (KIP-890).

A batch that continues a transaction goes straight into the log. One that would begin one needs permission: its
transaction's coordinator must say that the partition is part of it, or a record could arrive late, after the marker, and hang
there for ever. The question takes a while, and the answer must not outlive what it was about: a guard stands for the question,
and whatever ends a transaction of that producer makes it void.

What a reader could get wrong
    Batches of one producer and epoch that wait at the same time share a guard; the first to be written opens the transaction
    for all of them. Of those the one with the lowest sequence must come first.
    A guard is of this node's time as leader. Nothing of it is written down.
"""

from ropewalk.base.errors import InvalidTransactionState, OutOfOrderSequence
from ropewalk.base.limits import VERIFICATIONS_PER_PARTITION_MAX
from ropewalk.records.batch import BatchHeader
from ropewalk.records.marker import OWN_EPOCHS_SINCE, TransactionMarker


class VerificationGuard:
    __slots__ = ("bumps_epoch", "lowest_sequence", "producer_epoch", "producer_id")

    def __init__(self, header: BatchHeader, bumps_epoch: bool) -> None:
        self.producer_id = header.producer_id
        self.producer_epoch = header.producer_epoch
        self.lowest_sequence = header.base_sequence
        self.bumps_epoch = bumps_epoch
        """Whether every transaction of the producer has an epoch of its own, and so begins with sequence 0."""


class Guards:
    __slots__ = ("_guards",)

    def __init__(self) -> None:
        self._guards: dict[int, VerificationGuard] = {}

    def give(self, header: BatchHeader, *, bumps_epoch: bool) -> VerificationGuard:
        known = self._guards.get(header.producer_id)
        if known is not None and known.producer_epoch == header.producer_epoch:
            known.lowest_sequence = min(known.lowest_sequence, header.base_sequence)
            return known
        guard = VerificationGuard(header, bumps_epoch)
        if known is None or known.producer_epoch < header.producer_epoch:
            self._guards.pop(header.producer_id, None)
            self._guards[header.producer_id] = guard
            if len(self._guards) > VERIFICATIONS_PER_PARTITION_MAX:
                del self._guards[next(iter(self._guards))]
        return guard

    def check(self, header: BatchHeader, guard: VerificationGuard | None, *, is_known: bool) -> None:
        """Raise unless `guard` lets the batch begin a transaction. `is_known`: the log remembers its producer."""
        if (
            guard is None
            or self._guards.get(header.producer_id) is not guard
            or guard.producer_epoch != header.producer_epoch
        ):
            raise InvalidTransactionState(
                f"producer {header.producer_id} at epoch {header.producer_epoch} has no transaction open here"
            )
        if header.base_sequence > guard.lowest_sequence or (
            guard.bumps_epoch and header.base_sequence > 0 and not is_known
        ):
            raise OutOfOrderSequence(
                f"producer {header.producer_id} would begin with sequence {header.base_sequence}; earlier ones are on their way"
            )

    def void(self, producer_id: int) -> None:
        """What was asked about that producer says nothing any more."""
        self._guards.pop(producer_id, None)

    def on_marker(self, marker: TransactionMarker) -> None:
        """What was asked about the transaction that ends says nothing any more.

        Where every transaction has an epoch of its own, the marker has that of the next, which a quick producer may have
        begun to ask about.
        """
        guard = self._guards.get(marker.producer_id)
        if guard is not None:
            is_next = guard.producer_epoch >= marker.producer_epoch and marker.version >= OWN_EPOCHS_SINCE
            if not is_next:
                del self._guards[marker.producer_id]
