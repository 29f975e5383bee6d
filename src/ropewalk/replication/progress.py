"""What a leader knows of one follower: how far it has come, and since when it is in step.

A follower is caught up at an instant if it has since reached what the log's end was then. Under load a follower never
stands at the very end, so a fetch that reaches the end as it was at the fetch before proves that it was caught up at
the time of that one. One that stands at the end is caught up until something is appended.
"""

from typing import Final

from msgspec import Struct

from ropewalk.base.ids import Offset

UNHEARD: Final = -1
NEVER_MS: Final = -(1 << 60)


class Progress(Struct, gc=False):
    """`durable_offset` is what the follower asked for last, in this leadership: it holds everything below, durably."""

    durable_offset: int
    broker_epoch: int
    """Of the process that said so. An older one is not listened to, a newer one starts from what it says."""

    caught_up_at_ms: int
    in_step_since_ms: int
    fetched_at_ms: int
    end_offset_then: Offset
    """Where the leader's log ended at the last fetch."""

    start_offset: int = UNHEARD
    """Where its log begins, durably."""

    held_back: bool = False
    """It was dropped as a straggler, and has yet to show that it keeps up."""

    @property
    def is_heard(self) -> bool:
        return self.durable_offset != UNHEARD

    def behind_ms(self, end_offset: Offset, now_ms: int) -> int:
        return 0 if self.durable_offset >= end_offset else now_ms - self.caught_up_at_ms

    def on_fetch(
        self,
        *,
        broker_epoch: int,
        fetch_offset: Offset,
        start_offset: Offset,
        end_offset: Offset,
        now_ms: int,
        step_ms: int,
    ) -> None:
        """It asked for `fetch_offset`, with a log that begins at `start_offset`, while the leader's ended at `end_offset`.

        Behind for `step_ms` is out of step.
        """
        if broker_epoch != self.broker_epoch:
            self.broker_epoch = broker_epoch
            self.in_step_since_ms = now_ms
        if fetch_offset >= end_offset:
            self.caught_up_at_ms = now_ms
        elif fetch_offset >= self.end_offset_then:
            self.caught_up_at_ms = max(self.caught_up_at_ms, self.fetched_at_ms)
        # The newest word counts even if it is less: a replica that had to begin again no longer has what it had.
        self.durable_offset, self.start_offset = fetch_offset, start_offset
        self.fetched_at_ms, self.end_offset_then = now_ms, end_offset
        if self.behind_ms(end_offset, now_ms) > step_ms:
            self.in_step_since_ms = now_ms


def unheard(*, caught_up_at_ms: int, end_offset: Offset, now_ms: int) -> Progress:
    """A follower that has not asked for anything yet."""
    return Progress(UNHEARD, UNHEARD, caught_up_at_ms, now_ms, now_ms, end_offset)
