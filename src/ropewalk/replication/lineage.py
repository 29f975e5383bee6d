"""Whether a follower's log continues the leader's, told from the epochs that wrote them (KIP-101, KIP-279, KIP-595).

Two logs that hold an offset in the same epoch are the same up to there, since an epoch has one leader and a leader
writes an offset once. A follower therefore names the epoch of its last batch with every fetch, and the leader answers
with records, or with the end of the newest epoch that both may share.
"""

from typing import Protocol

from msgspec import Struct

from ropewalk.base.ids import LeaderEpoch, Offset
from ropewalk.log.epochs import EpochEnd


class LogView(Protocol):
    """What the cores look at in a log. `log.log.Log` is one."""

    @property
    def start_offset(self) -> Offset: ...
    @property
    def end_offset(self) -> Offset: ...
    @property
    def leader_epoch_latest(self) -> LeaderEpoch:
        """The epoch of the last batch; -1 in an empty log."""

    def end_offset_for_epoch(self, leader_epoch: LeaderEpoch) -> EpochEnd | None:
        """The end of the largest epoch that is not above `leader_epoch`; None if there is none."""


class OutOfRange(Struct, frozen=True, gc=False):
    """The leader has nothing that continues the follower's log: that one begins again at `start_offset`."""

    start_offset: Offset


def find_divergence(
    log: LogView, *, fetch_offset: Offset, last_fetched_epoch: LeaderEpoch
) -> EpochEnd | OutOfRange | None:
    """What a leader answers a replica whose log ends at `fetch_offset` with a batch of `last_fetched_epoch` (-1: it is empty).

    None: its log continues the leader's, and only then does its fetch offset count as progress. `EpochEnd`: the logs
    part; it has to cut its own and ask again.
    """
    if not log.start_offset <= fetch_offset:
        return OutOfRange(log.start_offset)
    if last_fetched_epoch < 0:
        return OutOfRange(log.start_offset) if fetch_offset > log.end_offset else None
    shared = log.end_offset_for_epoch(last_fetched_epoch)
    if shared is None:
        # All that the leader holds is of later epochs, so nothing that the follower holds from the leader's start on is the same.
        return OutOfRange(log.start_offset)
    if shared.leader_epoch < last_fetched_epoch or shared.end_offset < fetch_offset:
        return shared
    return None


def truncation_offset(log: LogView, diverging: EpochEnd) -> Offset:
    """Where a follower cuts its log after the leader's answer `diverging`. Asking again shows whether that was enough.

    Tail first: at least the follower's last batch goes, and never a batch that it shares with the leader.
    """
    own = log.end_offset_for_epoch(diverging.leader_epoch)
    if own is None:
        return log.start_offset
    if own.leader_epoch == diverging.leader_epoch:
        return min(own.end_offset, diverging.end_offset)
    return own.end_offset
