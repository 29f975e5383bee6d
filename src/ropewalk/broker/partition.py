"""One partition led by this node: append, the high watermark, and those who wait for it.

Invariants
    The high watermark never moves back and never passes what the `flush` setting promises: with
    `flush=group` the durable offset, so that no consumer is shown what a power cut could remove.
    A ticket is released when the high watermark has passed its batch, never before, and in order.

What a reader could get wrong
    A duplicate of an idempotent producer is answered with its first offset, but its ticket waits like
    any other: the first copy may not be durable yet.
"""

import asyncio
from collections import deque
from enum import IntEnum
from typing import Protocol

from msgspec import Struct

from ropewalk.base.errors import (
    InvalidTopicName,
    NodeStopping,
    RopewalkError,
    TimedOut,
    UnknownTopic,
)
from ropewalk.base.ids import LeaderEpoch, Offset, TopicId, TopicPartition
from ropewalk.base.ports import Clock
from ropewalk.broker.leader_epochs import check_leader_epoch
from ropewalk.broker.watchers import Watcher, Watchers
from ropewalk.log.log import Log, SyncTargets
from ropewalk.log.storage import Removal
from ropewalk.metadata.internal_topics import INTERNAL_TOPICS
from ropewalk.records.batch import BatchHeader
from ropewalk.records.conform import conform
from ropewalk.records.validate import Rules, validate_produced


class Acks(IntEnum):
    """Whom a producer wants to hear from before it goes on."""

    NOBODY = 0
    LEADER = 1
    ALL = -1


class Commits(Protocol):
    """Where a partition says that it holds bytes that are not yet durable."""

    def note(self, partition: "Partition") -> None: ...


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


class Prepared(Struct, frozen=True):
    """A batch that may enter the log as it is."""

    batch: memoryview
    header: BatchHeader


class _Waiting(Struct):
    end_offset: Offset
    deadline_ms: float
    acknowledged: asyncio.Future[None]


class Partition:
    """Everything here answers at once: what takes time is a ticket, or belongs in the disk pool."""

    def __init__(
        self,
        name: TopicPartition,
        topic_id: TopicId,
        log: Log,
        *,
        leader_epoch: LeaderEpoch,
        rules: Rules,
        durable_first: bool,
        in_memory: bool,
        commits: Commits,
        clock: Clock,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.log = log
        self.leader_epoch = leader_epoch
        self.rules = rules
        self.durable_first = durable_first
        """Whether a write counts only once it is on disk (`flush=group` on a real disk)."""

        self.in_memory = in_memory
        self.high_watermark = log.durable_offset if durable_first else log.end_offset
        self._commits = commits
        self._clock = clock
        self._waiting: deque[_Waiting] = deque()
        self._watchers = Watchers()
        self._end: RopewalkError | None = None
        self._has_ended = False
        self._segment_count = log.segment_count
        self._appended_bytes = 0
        self._syncing_bytes = 0
        self._shown_bytes = (
            0  # below the high watermark, counted as the two above from the start of this object
        )

    is_replicated = False
    """Whether others keep copies, so that the high watermark is not simply how far this one is durable."""

    @property
    def last_stable_offset(self) -> Offset:
        """Without transactions nothing is undecided below the high watermark."""
        return self.high_watermark

    @property
    def appended_bytes(self) -> int:
        """Of all batches since this object was made."""
        return self._appended_bytes

    @property
    def opens_batches(self) -> bool:
        """Whether `prepare` takes so long that it belongs in the disk pool."""
        return self.rules.opens_records or self.rules.compression is not None

    def prepare(self, batch: memoryview) -> Prepared:
        """Check what a client sent against the topic's rules and give it the form the topic stores.

        Touches nothing but `batch`, so it may run in the disk pool.
        """
        if self.name.topic in INTERNAL_TOPICS:
            raise InvalidTopicName(f"{self.name.topic} is written by the node alone")
        now_ms = self._clock.now_ms()
        header = validate_produced(batch, self.rules, now_ms)
        if self.rules.rewrites:
            batch, header = conform(batch, header, self.rules, now_ms)
        return Prepared(batch, header)

    def append(self, prepared: Prepared, acks: Acks, timeout_ms: int) -> Ticket:
        """Write the batch now; the ticket says where it went and can be awaited for the acks.

        Runs to the end without suspending, so two appends never interleave. The batch is stamped in
        place and not kept.
        """
        if self._end is not None:
            raise self._end.with_traceback(None)  # one error, raised often: it would remember every time
        header = prepared.header
        appended = self.log.append(
            prepared.batch, header, leader_epoch=self.leader_epoch, now_ms=self._clock.now_ms()
        )
        if not appended.duplicate:
            self._appended_bytes += header.size_bytes
        if not self.durable_first:
            self._advance(self.log.end_offset, self._appended_bytes)
            self._note_roll()
        elif appended.end_offset > self.high_watermark:
            self._commits.note(self)
        return Ticket(
            appended.base_offset,
            header.max_timestamp if header.uses_append_time else -1,
            self.log.start_offset,
            self.expect(appended.end_offset, timeout_ms) if acks is not Acks.NOBODY else None,
        )

    def expect(self, end_offset: Offset, timeout_ms: int) -> asyncio.Future[None] | None:
        """Done when the high watermark has passed `end_offset`; fails when the time is over. None: it has passed already."""
        if end_offset <= self.high_watermark:
            return None
        acknowledged: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._has_ended and self._end is not None:  # nothing will move the high watermark any more
            acknowledged.set_exception(self._end)
            return acknowledged
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        self._waiting.append(_Waiting(end_offset, deadline_ms, acknowledged))
        return acknowledged

    def begin_sync(self) -> SyncTargets:
        """What must reach the disk so that all that is in the log by now is durable."""
        self._syncing_bytes = self._appended_bytes
        return self.log.sync_targets()

    def on_durable(self, end_offset: Offset) -> None:
        """The sync that began when the log ended at `end_offset` has succeeded."""
        self.log.on_synced(end_offset)
        if self.durable_first:
            self._advance(end_offset, self._syncing_bytes)

    def set_durable_first(self, durable_first: bool) -> None:
        """The topic's `flush` setting changed. The high watermark never moves back; what is above it waits for the disk."""
        self.durable_first = durable_first
        if self.log.dirty:
            self._commits.note(self)
            if not durable_first:
                self._advance(self.log.end_offset, self._appended_bytes)

    def expire(self, now_ms: float) -> None:
        """Tell producers whose time is over that the outcome is unknown. The write itself stays."""
        while self._waiting and self._waiting[0].deadline_ms <= now_ms:
            waiting = self._waiting.popleft()
            if not waiting.acknowledged.done():
                waiting.acknowledged.set_exception(
                    TimedOut(f"{self.name}: not acknowledged in time; it may still be written")
                )

    def take_removal(self, *, start_offset_durable: Offset) -> Removal | None:
        """As `Log.take_removal`, and tell readers if the start has moved."""
        before = self.log.start_offset
        removal = self.log.take_removal(start_offset_durable=start_offset_durable)
        if self.log.start_offset != before:
            self._watchers.tell_of_change()
        return removal

    def set_leader_epoch(self, leader_epoch: LeaderEpoch) -> None:
        if leader_epoch != self.leader_epoch:
            self.leader_epoch = leader_epoch
            self._watchers.tell_of_change()

    def check_epoch(self, caller_epoch: int) -> None:
        check_leader_epoch(self.name, self.leader_epoch, caller_epoch)

    def watch(self, watcher: Watcher) -> None:
        self._watchers.add(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        self._watchers.remove(watcher)

    @property
    def watcher_count(self) -> int:
        return len(self._watchers)

    def refuse(self, reason: RopewalkError) -> None:
        """Take no more from here on. Writes already taken may still be acknowledged."""
        self._end = reason

    def end(self, reason: RopewalkError) -> None:
        """Refuse, and send everybody who waits away."""
        self.refuse(reason)
        self._has_ended = True
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.acknowledged.done():
                waiting.acknowledged.set_exception(reason)
        self._watchers.end()

    def check_readable(self) -> None:
        if self._end is not None:
            raise self._end.with_traceback(None)  # one error, raised often: it would remember every time

    def _note_roll(self) -> None:
        """Where nobody waits for the disk, closed segments still have to get there, for the recovery point."""
        if self.log.segment_count != self._segment_count:
            self._segment_count = self.log.segment_count
            self._commits.note(self)

    def _advance(self, high_watermark: Offset, shown_bytes: int) -> None:
        if high_watermark <= self.high_watermark:
            return
        self.high_watermark = high_watermark
        grown_bytes, self._shown_bytes = shown_bytes - self._shown_bytes, shown_bytes
        while self._waiting and self._waiting[0].end_offset <= high_watermark:
            waiting = self._waiting.popleft()
            if not waiting.acknowledged.done():  # its time may be over
                waiting.acknowledged.set_result(None)
        self._watchers.tell_of_growth(grown_bytes)


def topic_deleted(name: TopicPartition) -> RopewalkError:
    return UnknownTopic(f"{name} was deleted")


def node_stopping(name: TopicPartition) -> RopewalkError:
    return NodeStopping(f"{name}: the node is shutting down; the outcome of a write in flight is unknown")
