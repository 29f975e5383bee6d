"""The transactions of one partition: which are open, which have ended, and how far everything is decided.

Invariants
    The last stable offset never passes the first record of a transaction that is open, nor of one whose marker a change of
    leader could still take back: one whose marker is not below the high watermark.
    The open ones lie in the order of their first offsets, the ended ones in the order of both their offsets.

What a reader could get wrong
    A transaction begins with its first record in the partition, whenever its producer began it. Without records it ends
    without a trace: such a marker moves no offset that anybody reads.
    Where very many have ended above the high watermark, the earliest are counted as one: they are held back a little too
    long, never too short.
"""

from typing import TypeAlias

from msgspec import Struct

from ropewalk.base.limits import UNSETTLED_TRANSACTIONS_MAX
from ropewalk.log.aborted import AbortedTransaction, AbortedTransactions
from ropewalk.records.batch import BatchHeader

Unsettled: TypeAlias = tuple[int, int]
"""First offset and the offset of the marker of a transaction that has ended."""


class OpenTransaction(Struct, frozen=True, gc=False, array_like=True):
    producer_id: int
    producer_epoch: int
    first_offset: int
    started_at_ms: int
    """By the clock of this node, at the first record that it took or found."""


class SavedTransactions(Struct, frozen=True, array_like=True):
    """As a snapshot keeps them; aborted ones have files of their own."""

    open: list[OpenTransaction] = []
    unsettled: list[Unsettled] = []


class Transactions:
    __slots__ = ("_open", "_unsettled", "aborted")

    def __init__(
        self, saved: SavedTransactions | None = None, aborted: AbortedTransactions | None = None
    ) -> None:
        self._open = {each.producer_id: each for each in (saved.open if saved is not None else ())}
        self._unsettled: list[Unsettled] = list(saved.unsettled) if saved is not None else []
        self.aborted = aborted or AbortedTransactions()

    def save(self) -> SavedTransactions:
        return SavedTransactions(list(self._open.values()), list(self._unsettled))

    def open_of(self, producer_id: int) -> OpenTransaction | None:
        return self._open.get(producer_id)

    def all_open(self) -> tuple[OpenTransaction, ...]:
        """In the order of their first offsets."""
        return tuple(self._open.values())

    def stable_offset(self, high_watermark: int) -> int:
        """Below it every transaction has ended, and nothing can take its end back.

        The high watermark is where it is for good: transactions that ended below it are forgotten here.
        """
        unsettled = self._unsettled
        if unsettled:
            if unsettled[0][1] < high_watermark:
                del unsettled[: _count_below(unsettled, high_watermark)]
            if unsettled and unsettled[0][0] < high_watermark:
                high_watermark = unsettled[0][0]
        for first in self._open.values():
            return min(high_watermark, first.first_offset)
        return high_watermark

    def write(self, header: BatchHeader, base_offset: int, now_ms: int) -> None:
        """A transactional batch with records stands in the log at `base_offset`."""
        known = self._open.get(header.producer_id)
        if known is None:
            self._open[header.producer_id] = OpenTransaction(
                header.producer_id, header.producer_epoch, base_offset, now_ms
            )
        elif known.producer_epoch != header.producer_epoch:
            self._open[header.producer_id] = OpenTransaction(
                known.producer_id, header.producer_epoch, known.first_offset, known.started_at_ms
            )

    def end(self, producer_id: int, *, committed: bool, marker_offset: int) -> None:
        """The marker of the producer's transaction stands in the log at `marker_offset`."""
        ended = self._open.pop(producer_id, None)
        if ended is None:
            return
        first_offset, unsettled = ended.first_offset, self._unsettled
        if not committed:
            self.aborted.add(AbortedTransaction(producer_id, first_offset, marker_offset))
        while unsettled and unsettled[-1][0] >= first_offset:
            unsettled.pop()  # this one holds back all that they do, and for longer
        unsettled.append((first_offset, marker_offset))
        if len(unsettled) > UNSETTLED_TRANSACTIONS_MAX:
            self._unsettled = _with_earlier_half_joined(unsettled)


def _count_below(unsettled: list[Unsettled], high_watermark: int) -> int:
    for count, (_, marker_offset) in enumerate(unsettled):
        if marker_offset >= high_watermark:
            return count
    return len(unsettled)


def _with_earlier_half_joined(unsettled: list[Unsettled]) -> list[Unsettled]:
    half = len(unsettled) // 4 * 2
    joined = [(unsettled[at][0], unsettled[at + 1][1]) for at in range(0, half, 2)]
    return joined + unsettled[half:]
