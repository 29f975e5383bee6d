"""Which leader epoch wrote which part of a log.

Followers and consumers find the point where two histories part by asking for the end of an epoch
(KIP-101, KIP-279). The table is derived from the batches and can always be rebuilt from them.

Invariants
    Epochs and start offsets both rise from entry to entry.
"""

from bisect import bisect_right

from msgspec import Struct

from ropewalk.base.ids import LeaderEpoch, Offset


class EpochEnd(Struct, frozen=True, gc=False):
    """An epoch, and the offset after the last one it wrote."""

    leader_epoch: LeaderEpoch
    end_offset: Offset


class LeaderEpochs:
    __slots__ = ("_epochs", "_start_offsets", "latest")

    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self._epochs = [epoch for epoch, _ in entries or ()]
        self._start_offsets = [start for _, start in entries or ()]
        self.latest = self._epochs[-1] if self._epochs else -1
        """The epoch of the last batch; -1 in an empty log."""

    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._start_offsets, strict=True))

    def assign(self, leader_epoch: int, start_offset: int) -> None:
        """The batch at `start_offset` is of `leader_epoch`. Cheap if the epoch is the latest."""
        if leader_epoch == self.latest:
            return
        assert leader_epoch > self.latest, f"epoch {leader_epoch} after {self.latest}"
        self._epochs.append(leader_epoch)
        self._start_offsets.append(start_offset)
        self.latest = leader_epoch

    def at(self, offset: int) -> int:
        """The epoch of the batch that holds `offset`; -1 before the first entry."""
        index = bisect_right(self._start_offsets, offset) - 1
        return self._epochs[index] if index >= 0 else -1

    def end_of(self, leader_epoch: int, *, log_end_offset: int) -> EpochEnd | None:
        """The end of the largest epoch that is not above `leader_epoch`; None if there is none."""
        index = bisect_right(self._epochs, leader_epoch) - 1
        if index < 0:
            return None
        is_last = index == len(self._epochs) - 1
        end_offset = log_end_offset if is_last else self._start_offsets[index + 1]
        return EpochEnd(LeaderEpoch(self._epochs[index]), Offset(end_offset))

    def from_offset(self, start_offset: int) -> "LeaderEpochs":
        """The same for a log that begins at `start_offset`; the epoch that wrote there keeps its entry from there.

        Readers of what is being deleted may still look at this one, which stays as it is.
        """
        first = max(0, bisect_right(self._start_offsets, start_offset) - 1)
        return LeaderEpochs([(epoch, max(start, start_offset)) for epoch, start in self.entries()[first:]])
