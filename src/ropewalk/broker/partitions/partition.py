"""One partition led by this node: append, the high watermark, and those who wait for it.

Invariants
    The high watermark never moves back and never passes what the `flush` setting promises: with
    `flush=group` the durable offset, so that no consumer is shown what a power cut could remove. Where others keep copies
    it is the leader's core that says how far it is (`followers`).
    A ticket is released when the high watermark has passed its batch, never before, and in order. With acks=1 it waits for
    this node's disk alone.

What a reader could get wrong
    A duplicate of an idempotent producer is answered with its first offset, but its ticket waits like
    any other: the first copy may not be durable yet.
"""

import asyncio
from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from ropewalk.base.errors import (
    InvalidTopicName,
    NodeStopping,
    OffsetNotAvailable,
    PolicyViolation,
    RopewalkError,
    UnknownTopic,
)
from ropewalk.base.ids import LeaderEpoch, NodeId, Offset, TopicId, TopicPartition
from ropewalk.base.limits import HANGING_SLACK_MS
from ropewalk.base.ports import Clock
from ropewalk.broker.partitions.acknowledgements import Acknowledgements, Acks, Ticket
from ropewalk.broker.partitions.followers import Followers
from ropewalk.broker.partitions.leader_epochs import check_leader_epoch
from ropewalk.broker.partitions.verification import Guards, VerificationGuard
from ropewalk.broker.partitions.watchers import Watcher, Watchers
from ropewalk.log.log import Log, SyncTargets
from ropewalk.log.storage import Removal
from ropewalk.log.transactions import OpenTransaction
from ropewalk.metadata.image import Broker
from ropewalk.metadata.internal_topics import NODES_TOPICS
from ropewalk.records.batch import TRANSACTIONAL, BatchHeader
from ropewalk.records.conform import conform
from ropewalk.records.marker import TransactionMarker
from ropewalk.records.validate import Rules, validate_produced


class Commits(Protocol):
    """Where a partition says that it holds bytes that are not yet durable."""

    def note(self, partition: "Partition") -> None: ...


class Prepared(Struct, frozen=True):
    """A batch that may enter the log as it is."""

    batch: memoryview
    header: BatchHeader


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
        """Leads alone until `share` is called."""
        self.name = name
        self.topic_id = topic_id
        self.log = log
        self.leader_epoch = leader_epoch
        self.set_rules(rules)
        self.durable_first = durable_first
        """Whether a write counts only once it is on disk (`flush=group` on a real disk)."""

        self.in_memory = in_memory
        self.high_watermark = log.durable_offset if durable_first else log.end_offset
        self._commits = commits
        self._clock = clock
        self.acknowledgements = Acknowledgements(name, clock)
        self._guards = Guards()
        self._watchers = Watchers()
        self.followers: Followers | None = None
        """None where nobody else keeps a copy."""

        self._end: RopewalkError | None = None
        self.is_over = False
        """Whether the log is no longer this object's."""

        self._segment_count = log.segment_count
        self._appended_bytes = 0
        self.fetched_bytes = 0
        """Read by consumers since this object was made."""

        self._syncing_bytes = 0
        self._shown_bytes = (
            0  # below the high watermark, counted as the two above from the start of this object
        )

    @property
    def is_replicated(self) -> bool:
        """Whether others keep copies, so that the high watermark is not simply how far this one is durable."""
        return self.followers is not None

    @property
    def is_copied_anew(self) -> bool:
        """Whether a replica is copying everything, and would have to begin again if deletions were removed meanwhile."""
        return self.followers is not None and self.followers.would_miss

    @property
    def reached_offset(self) -> Offset:
        """Up to here this node's own copy counts."""
        return self.log.durable_offset if self.durable_first else self.log.end_offset

    @property
    def has_ended(self) -> bool:
        return self.acknowledgements.have_ended

    @property
    def last_stable_offset(self) -> Offset:
        """Below it no transaction is undecided. It moves only when the high watermark does."""
        return self.log.stable_offset(self.high_watermark)

    @property
    def appended_bytes(self) -> int:
        """Of all batches since this object was made."""
        return self._appended_bytes

    def set_rules(self, rules: Rules) -> None:
        """From the next batch on, demand this of what clients send."""
        self.rules = rules
        self.opens_batches = rules.opens_records or rules.compression is not None
        """Whether `prepare` takes so long that it belongs in the disk pool."""

        self._is_closed = rules.is_closed or self.name.topic in NODES_TOPICS

    def prepare(self, batch: memoryview) -> Prepared:
        """Check what a client sent against the topic's rules and give it the form the topic stores.

        Touches nothing but `batch`, so it may run in the disk pool.
        """
        if self._is_closed:
            raise self._closed()
        now_ms = self._clock.now_ms()
        header = validate_produced(batch, self.rules, now_ms)
        if self.rules.rewrites:
            batch, header = conform(batch, header, self.rules, now_ms)
        return Prepared(batch, header)

    def _closed(self) -> RopewalkError:
        if self.name.topic in NODES_TOPICS:
            return InvalidTopicName(f"{self.name.topic} is written by the node alone")
        return PolicyViolation(
            f"{self.name.topic} is the topic of a FIFO queue, and its messages are sent to the queue: nobody else keeps their order"
        )

    def verification_needed(
        self, header: BatchHeader, *, bumps_epoch: bool = False
    ) -> VerificationGuard | None:
        """What a batch needs that would begin a transaction here; None for all others, which `append` takes as they are.

        The caller asks the transaction's coordinator, then appends with the guard. `bumps_epoch`: every transaction of
        the producer has an epoch of its own (Produce v12 and later). Refuses as `append` does.
        """
        if not header.attributes & TRANSACTIONAL or self.log.producers.continues_transaction(header):
            return None
        if self.log.producers.repeats(header):
            return None
        return self._guards.give(header, bumps_epoch=bumps_epoch)

    def append(
        self, prepared: Prepared, acks: Acks, timeout_ms: int, guard: VerificationGuard | None = None
    ) -> Ticket:
        """Write the batch now; the ticket says where it went and can be awaited for the acks.

        Runs to the end without suspending, so two appends never interleave. The batch is stamped in
        place and not kept. One that begins a transaction is refused with `InvalidTransactionState` unless its `guard` still
        counts.
        """
        header, followers = prepared.header, self.followers
        self._check_may_append(acks)
        begins = header.attributes & TRANSACTIONAL and not self.log.producers.continues_transaction(header)
        if begins and not self.log.producers.repeats(header):
            self._guards.check(header, guard, is_known=self.log.producers.knows(header.producer_id))
        appended = self.log.append(
            prepared.batch, header, leader_epoch=self.leader_epoch, now_ms=self._clock.now_ms()
        )
        if not appended.duplicate:
            if begins:
                self._guards.void(header.producer_id)
            self._appended_bytes += header.size_bytes
            if followers is not None:
                followers.on_appended(self.log.end_offset, header.size_bytes)
        self._settle_or_note(appended.end_offset)
        return Ticket(
            appended.base_offset,
            header.max_timestamp if header.uses_append_time else -1,
            self.log.start_offset,
            self._expect(appended.end_offset, acks, timeout_ms) if acks is not Acks.NOBODY else None,
        )

    def append_marker(self, marker: TransactionMarker, acks: Acks, timeout_ms: int) -> Ticket:
        """End a producer's transaction here; refuses as `Log.append_marker` does.

        A marker that was written before is not written again: its ticket has base offset -1, and is acknowledged when
        all that is in the log by now is. A producer that waits for permission to write in the transaction that ends has waited in vain.
        """
        self._check_may_append(acks)
        appended = self.log.append_marker(marker, leader_epoch=self.leader_epoch, now_ms=self._clock.now_ms())
        self._guards.on_marker(marker)
        end_offset = self.log.end_offset
        if appended is not None:
            self._appended_bytes += appended.size_bytes
            if self.followers is not None:
                self.followers.on_appended(end_offset, appended.size_bytes)
        self._settle_or_note(end_offset)
        return Ticket(
            Offset(-1) if appended is None else appended.base_offset,
            -1,
            self.log.start_offset,
            self._expect(end_offset, acks, timeout_ms) if acks is not Acks.NOBODY else None,
        )

    def hanging_transactions(self, *, timeout_ms_max: int) -> tuple[OpenTransaction, ...]:
        """Those that their coordinators should have aborted by now, whatever time their producers gave them."""
        began_before_ms = self._clock.now_ms() - timeout_ms_max - HANGING_SLACK_MS
        return tuple(
            [each for each in self.log.producers.open_transactions() if each.started_at_ms < began_before_ms]
        )

    def expect(self, end_offset: Offset, timeout_ms: int) -> asyncio.Future[None] | None:
        """Done when the high watermark has passed `end_offset`; fails when the time is over. None: it has passed already."""
        if end_offset <= self.high_watermark:
            return None
        return self.acknowledgements.expect(self.acknowledgements.committed, end_offset, timeout_ms)

    def begin_sync(self) -> SyncTargets:
        """What must reach the disk so that all that is in the log by now is durable."""
        self._syncing_bytes = self._appended_bytes
        return self.log.sync_targets()

    def on_durable(self, end_offset: Offset) -> None:
        """The sync that began when the log ended at `end_offset` has succeeded."""
        self.log.on_synced(end_offset)
        if self.durable_first:
            self._settle(end_offset, self._syncing_bytes)

    def set_durable_first(self, durable_first: bool) -> None:
        """The topic's `flush` setting changed. The high watermark never moves back; what is above it waits for the disk."""
        self.durable_first = durable_first
        if self.log.dirty:
            self._commits.note(self)
            if not durable_first:
                self._settle(self.log.end_offset, self._appended_bytes)

    def expire(self, now_ms: float) -> None:
        self.acknowledgements.expire(now_ms)

    def take_removal(self, *, start_offset_durable: Offset) -> Removal | None:
        """As `Trimming.take_removal`, and tell readers if the start has moved."""
        before = self.log.start_offset
        removal = self.log.trimming.take_removal(start_offset_durable=start_offset_durable)
        if self.log.start_offset != before:
            self._on_start_moved()
        return removal

    def begin_at(self, offset: Offset) -> None:
        """The cluster says that what is below was deleted. It says so again after a power cut."""
        if offset > self.log.start_offset:
            self.log.begin_at(offset)
            self._on_start_moved()

    def expect_start(self, offset: Offset, timeout_ms: int) -> asyncio.Future[None] | None:
        """Done when every replica in service begins at `offset` or later, and no later leader can begin before it.

        Fails when the time is over. None: it is so already, as far as this node alone can tell.
        """
        if self.followers is None:
            return None
        trimmed = self.acknowledgements.expect(self.acknowledgements.trimmed, offset, timeout_ms)
        self.followers.on_trimmed()
        return trimmed

    def low_watermark(self, brokers: Mapping[NodeId, Broker]) -> int:
        """Where the replicas in service begin at the earliest, and any later leader; -1 while nothing was heard of one of them."""
        if self.followers is None:
            return self.log.start_offset
        core = self.followers.core
        return min(core.low_watermark(brokers), core.start_settled)

    def share(self, followers: Followers | None, leader_epoch: LeaderEpoch) -> None:
        """Lead on, in this epoch, with these followers or with none."""
        former, self.followers = self.followers, followers
        self.set_leader_epoch(leader_epoch)
        if former is not None:
            former.watchers.end()
        if followers is None:
            self.acknowledgements.on_disk.release(self.reached_offset)
            self.acknowledgements.trimmed.release(self.log.start_offset)
            self._advance(self.reached_offset, self._appended_bytes)
        else:
            self.high_watermark = followers.core.high_watermark
            followers.on_changed()

    def advance_with(self, followers: Followers) -> None:
        """What the followers' core knows of the high watermark counts."""
        high_watermark = followers.core.high_watermark
        if high_watermark <= self.high_watermark:
            return
        self.high_watermark = high_watermark
        # How many bytes lie below is known only at the end. Readers that are told of too many look, and wait again.
        grown_bytes = self._appended_bytes - self._shown_bytes
        if high_watermark == self.log.end_offset:
            self._shown_bytes = self._appended_bytes
        self.acknowledgements.committed.release(high_watermark)
        self._watchers.tell_of_growth(grown_bytes)
        followers.watchers.tell_of_growth(0)  # no more to read, but news for whenever there is

    def set_leader_epoch(self, leader_epoch: LeaderEpoch) -> None:
        if leader_epoch != self.leader_epoch:
            self.leader_epoch = leader_epoch
            self._watchers.tell_of_change()  # replicas have heard by the end of the followers that they were

    def check_epoch(self, caller_epoch: int) -> None:
        check_leader_epoch(self.name, self.leader_epoch, caller_epoch)

    def watch(self, watcher: Watcher) -> None:
        self._watchers.add(watcher)

    def watch_as_replica(self, watcher: Watcher) -> None:
        """As `watch`, and be told of growth when something is appended, not when it is committed."""
        if self.followers is not None:
            self.followers.watchers.add(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        self._watchers.remove(watcher)
        if self.followers is not None:
            self.followers.watchers.remove(watcher)

    @property
    def watcher_count(self) -> int:
        return len(self._watchers)

    def refuse(self, reason: RopewalkError) -> None:
        """Take no more from here on. Writes already taken may still be acknowledged."""
        self._end = reason

    def end(self, reason: RopewalkError) -> None:
        """Refuse, and send everybody who waits away. What was appended may come to count all the same, on another node."""
        self.refuse(reason)
        self.is_over = True
        self.acknowledgements.end(reason)
        if self.followers is not None:
            self.followers.watchers.end()
        self._watchers.end()

    def check_committed(self) -> None:
        """Raise while it is not known how far the records of earlier leaders are committed (KIP-207).

        Whoever was told an end before must not see it move back.
        """
        followers = self.followers
        if followers is not None and self.high_watermark < followers.core.epoch_start_offset:
            raise OffsetNotAvailable(f"{self.name}: its leader has yet to hear how far its followers are")

    def check_readable(self) -> None:
        if self._end is not None:
            raise self._end.with_traceback(None)  # one error, raised often: it would remember every time

    def _on_start_moved(self) -> None:
        self._watchers.tell_of_change()
        if self.followers is not None:
            self.followers.core.on_start(self.log.start_offset)
            self.followers.watchers.tell_of_change()

    def _check_may_append(self, acks: Acks) -> None:
        if self._end is not None:
            raise self._end.with_traceback(None)  # one error, raised often: it would remember every time
        if self.followers is not None and acks is Acks.ALL:
            self.followers.check_enough()

    def _settle_or_note(self, end_offset: Offset) -> None:
        """Something was appended, or found in the log, that ends at `end_offset`."""
        if not self.durable_first:
            self._settle(self.log.end_offset, self._appended_bytes)
            self._note_roll()
        elif end_offset > self.log.durable_offset:
            self._commits.note(self)

    def _note_roll(self) -> None:
        """Where nobody waits for the disk, closed segments still have to get there, for the recovery point."""
        if self.log.segment_count != self._segment_count:
            self._segment_count = self.log.segment_count
            self._commits.note(self)

    def _settle(self, offset: Offset, settled_bytes: int) -> None:
        """This node's own copy counts up to `offset`."""
        followers = self.followers
        if followers is None:
            self._advance(offset, settled_bytes)
            return
        followers.core.on_durable(offset)
        self.acknowledgements.on_disk.release(offset)
        self.advance_with(followers)

    def _advance(self, high_watermark: Offset, shown_bytes: int) -> None:
        if high_watermark <= self.high_watermark:
            return
        self.high_watermark = high_watermark
        grown_bytes, self._shown_bytes = shown_bytes - self._shown_bytes, shown_bytes
        self.acknowledgements.committed.release(high_watermark)
        self._watchers.tell_of_growth(grown_bytes)

    def _expect(self, end_offset: Offset, acks: Acks, timeout_ms: int) -> asyncio.Future[None] | None:
        if acks is Acks.ALL or self.followers is None:
            return self.expect(end_offset, timeout_ms)
        if end_offset <= self.reached_offset:
            return None
        return self.acknowledgements.expect(self.acknowledgements.on_disk, end_offset, timeout_ms)


def topic_deleted(name: TopicPartition) -> RopewalkError:
    return UnknownTopic(f"{name} was deleted")


def node_stopping(name: TopicPartition) -> RopewalkError:
    return NodeStopping(f"{name}: the node is shutting down; the outcome of a write in flight is unknown")
