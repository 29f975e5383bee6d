"""What clients wait for: producers once their batches are in the log, and those who delete records; and what they hear where it does not come.

What a reader could get wrong
    Nobody who waits is given a definite error for what may still take effect: a client would send it again, and have it twice.
    Whoever waits when a partition ends, or comes later, is sent away; whatever was appended may come to count all the same,
    on another node.
    A write of which somebody was told that its time is over stays in the log.
"""

import asyncio
from enum import IntEnum

from msgspec import Struct

from ropewalk.base.errors import NodeStopping, NotLeader, RopewalkError, TimedOut
from ropewalk.base.ids import Offset, TopicPartition
from ropewalk.base.ports import Clock
from ropewalk.broker.partitions.waiters import Waiters


class Acks(IntEnum):
    """Whom a producer wants to hear from before it goes on."""

    NOBODY = 0
    LEADER = 1
    ALL = -1


class Ticket(Struct, frozen=True):
    """A write that is in the log and waits for its acknowledgement."""

    base_offset: Offset
    append_time_ms: int
    """The broker's clock if the topic stamps it, else -1."""

    log_start_offset: Offset
    acknowledged: asyncio.Future[None] | None

    async def wait(self) -> None:
        """Return when the write is acknowledged; raises an error of which the outcome is unknown otherwise."""
        if self.acknowledged is not None:
            await self.acknowledged


class Acknowledgements:
    """Of one partition. It releases those who wait: `committed` and `on_disk` are told how far it has come."""

    __slots__ = ("_clock", "_end", "_name", "committed", "on_disk", "trimmed")

    def __init__(self, name: TopicPartition, clock: Clock) -> None:
        self._name = name
        self._clock = clock
        self._end: RopewalkError | None = None
        self.committed = Waiters()
        """For the high watermark."""

        self.on_disk = Waiters()
        """For this node's disk alone, where others keep copies too."""

        self.trimmed = Waiters()
        """For the starts of all copies: not producers, but those who delete records."""

    def __len__(self) -> int:
        return len(self.committed) + len(self.on_disk) + len(self.trimmed)

    @property
    def have_ended(self) -> bool:
        return self._end is not None

    def expect(self, waiters: Waiters, end_offset: Offset, timeout_ms: int) -> asyncio.Future[None]:
        """Done when `waiters`, one of those here, have been released up to `end_offset`; fails when the time is over."""
        if self._end is not None:  # nothing will come any more
            ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            ended.set_exception(self._end)
            ended.exception()  # as `Waiters` does: nobody has to hear it
            return ended
        return waiters.add(end_offset, self._clock.monotonic_ms() + timeout_ms)

    def expire(self, now_ms: float) -> None:
        """Tell producers whose time is over that the outcome is unknown."""
        if len(self.committed) or len(self.on_disk):
            reason = TimedOut(f"{self._name}: not acknowledged in time; it may still be written")
            self.committed.expire(now_ms, reason)
            self.on_disk.expire(now_ms, reason)
        if len(self.trimmed):
            self.trimmed.expire(
                now_ms, TimedOut(f"{self._name}: not all replicas have deleted the records yet")
            )

    def end(self, reason: RopewalkError) -> None:
        """Send everybody away, and whoever comes later."""
        self._end = reason
        outcome = reason
        if isinstance(reason, NotLeader | NodeStopping):
            outcome = TimedOut(f"{self._name}: whether it was written is not known: {reason}")
        self.committed.fail(outcome)
        self.on_disk.fail(outcome)
        self.trimmed.fail(reason)  # to delete twice does no harm
