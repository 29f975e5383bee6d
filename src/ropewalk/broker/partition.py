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
from enum import IntEnum
from typing import Protocol

from msgspec import Struct

from ropewalk.base.errors import (
    InvalidTopicName,
    NodeStopping,
    NotEnoughReplicasAfterAppend,
    NotLeader,
    OffsetNotAvailable,
    RopewalkError,
    TimedOut,
    UnknownTopic,
)
from ropewalk.base.ids import LeaderEpoch, NodeId, Offset, TopicId, TopicPartition
from ropewalk.base.limits import HANGING_SLACK_MS
from ropewalk.base.ports import Clock
from ropewalk.broker.followers import Followers
from ropewalk.broker.leader_epochs import check_leader_epoch
from ropewalk.broker.verification import Guards, VerificationGuard
from ropewalk.broker.waiters import Waiters
from ropewalk.broker.watchers import Watcher, Watchers
from ropewalk.log.log import Log, SyncTargets
from ropewalk.log.storage import Removal
from ropewalk.log.transactions import OpenTransaction
from ropewalk.metadata.image import Partition as PartitionFacts
from ropewalk.metadata.internal_topics import INTERNAL_TOPICS
from ropewalk.records.batch import TRANSACTIONAL, BatchHeader
from ropewalk.records.conform import conform
from ropewalk.records.marker import TransactionMarker
from ropewalk.records.validate import Rules, validate_produced
from ropewalk.replication.leader import Leader, LeaderSettings, Outcome, Proposal


class Acks(IntEnum):
    """Whom a producer wants to hear from before it goes on."""

    NOBODY = 0
    LEADER = 1
    ALL = -1


class Commits(Protocol):
    """Where a partition says that it holds bytes that are not yet durable."""

    def note(self, partition: "Partition") -> None: ...


class InSync(Protocol):
    """Where a partition says that the set of its replicas in sync may have to change, now or by the passing of time."""

    def note(self, partition: "Partition") -> None: ...

    def hurry(self, partition: "Partition") -> None:
        """As `note`, and soon: somebody may join."""

    def on_changed(self, *, joined_count: int, left_count: int) -> None:
        """The cluster has changed a set of replicas in sync."""


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
        in_sync: InSync | None = None,
    ) -> None:
        """Leads alone until `share` is called."""
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
        self._waiters = Waiters()
        """For the high watermark."""

        self._disk_waiters = Waiters()
        """For this node's disk alone, where others keep copies too."""

        self._guards = Guards()
        self._watchers = Watchers()
        self._in_sync = in_sync
        self.followers: Followers | None = None
        """None where nobody else keeps a copy."""

        self._end: RopewalkError | None = None
        self._has_ended = False
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
    def reached_offset(self) -> Offset:
        """Up to here this node's own copy counts."""
        return self.log.durable_offset if self.durable_first else self.log.end_offset

    @property
    def has_ended(self) -> bool:
        return self._has_ended

    @property
    def has_waiters(self) -> bool:
        return bool(len(self._waiters) or len(self._disk_waiters))

    @property
    def last_stable_offset(self) -> Offset:
        """Below it no transaction is undecided. It moves only when the high watermark does."""
        return self.log.stable_offset(self.high_watermark)

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
                self._on_appended(followers, header.size_bytes)
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
        all that is in the log by now is. Whoever waits for leave to write in the transaction that ends has waited in vain.
        """
        self._check_may_append(acks)
        appended = self.log.append_marker(marker, leader_epoch=self.leader_epoch, now_ms=self._clock.now_ms())
        self._guards.on_marker(marker)
        end_offset = self.log.end_offset
        if appended is not None:
            self._appended_bytes += appended.size_bytes
            if self.followers is not None:
                self._on_appended(self.followers, appended.size_bytes)
        self._settle_or_note(end_offset)
        return Ticket(
            Offset(-1) if appended is None else appended.base_offset,
            -1,
            self.log.start_offset,
            self._expect(end_offset, acks, timeout_ms) if acks is not Acks.NOBODY else None,
        )

    def open_transactions(self) -> tuple[OpenTransaction, ...]:
        """In the order of their first records."""
        return self.log.producers.open_transactions()

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
        return self._wait(self._waiters, end_offset, timeout_ms)

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
        """Tell producers whose time is over that the outcome is unknown. The write itself stays."""
        if len(self._waiters) or len(self._disk_waiters):
            reason = TimedOut(f"{self.name}: not acknowledged in time; it may still be written")
            self._waiters.expire(now_ms, reason)
            self._disk_waiters.expire(now_ms, reason)

    def take_removal(self, *, start_offset_durable: Offset) -> Removal | None:
        """As `Trimming.take_removal`, and tell readers if the start has moved."""
        before = self.log.start_offset
        removal = self.log.trimming.take_removal(start_offset_durable=start_offset_durable)
        if self.log.start_offset != before:
            self._watchers.tell_of_change()
            if self.followers is not None:
                self.followers.watchers.tell_of_change()
        return removal

    def share(self, followers: Followers | None, leader_epoch: LeaderEpoch) -> None:
        """Lead on, in this epoch, with these followers or with none."""
        former, self.followers = self.followers, followers
        self.set_leader_epoch(leader_epoch)
        if former is not None:
            former.watchers.end()
        if followers is None:
            self._disk_waiters.release(self.reached_offset)
            self._advance(self.reached_offset, self._appended_bytes)
        else:
            self.high_watermark = followers.core.high_watermark
            self._note_sharing()

    def on_facts(self, facts: PartitionFacts, settings: LeaderSettings) -> None:
        """The cluster says this of the partition, which this node still leads in the same epoch, with others."""
        followers = self.followers
        assert followers is not None, "who leads alone has nothing to follow"
        before = followers.core.isr
        followers.on_facts(facts, settings)
        now = followers.core.isr
        if now != before and self._in_sync is not None:
            self._in_sync.on_changed(joined_count=len(now - before), left_count=len(before - now))
        if followers.core.is_below_minimum:
            self._waiters.fail(
                NotEnoughReplicasAfterAppend(
                    f"{self.name} has {len(now)} in-sync replicas left; whether the write survives is not known"
                )
            )
        self._note_sharing()

    def doubt(self) -> None:
        """Somebody else may lead by now: take nothing that would have to wait, and send away who waits already."""
        followers = self.followers
        if followers is not None and not followers.is_doubted:
            followers.is_doubted = True
            self._waiters.fail(
                TimedOut(f"{self.name}: its leader is cut off; whether the write survives is not known")
            )

    def trust(self) -> None:
        """A controller is heard, or everybody in sync is: nobody else leads, or the image will tell."""
        if self.followers is not None:
            self.followers.is_doubted = False

    def is_followed_by(self, node_id: NodeId) -> bool:
        """Whether that node keeps a copy, as far as this one has heard."""
        return self.followers is not None and node_id in self.followers.core.followers

    def on_fetch(self, node_id: NodeId, broker_epoch: int, fetch_offset: Offset) -> None:
        """A replica asked for `fetch_offset` in this epoch, and its log continues this one."""
        followers = self.followers
        if followers is None:
            return
        may_join = followers.on_fetch(node_id, broker_epoch, fetch_offset)
        self._advance_shared(followers)
        if may_join and self._in_sync is not None:
            self._in_sync.hurry(self)

    def on_outcome(self, core: Leader, proposal: Proposal, outcome: Outcome, now_ms: int) -> None:
        """What became of a set of replicas in sync that `core` had proposed."""
        core.on_outcome(proposal, outcome, now_ms)
        if self.followers is not None and self.followers.core is core:
            self._note_sharing()

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
        self._has_ended = True
        outcome = self._outcome_of_writes(reason)
        self._waiters.fail(outcome)
        self._disk_waiters.fail(outcome)
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

    def _outcome_of_writes(self, reason: RopewalkError) -> RopewalkError:
        """Never a definite error for what may still take effect: a client would send it again, and have it twice."""
        if isinstance(reason, NotLeader | NodeStopping):
            return TimedOut(f"{self.name}: whether it was written is not known: {reason}")
        return reason

    def check_readable(self) -> None:
        if self._end is not None:
            raise self._end.with_traceback(None)  # one error, raised often: it would remember every time

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

    def _on_appended(self, followers: Followers, size_bytes: int) -> None:
        followers.on_appended(self.log.end_offset, size_bytes)
        if self._in_sync is not None:
            self._in_sync.note(self)

    def _settle(self, offset: Offset, settled_bytes: int) -> None:
        """This node's own copy counts up to `offset`."""
        followers = self.followers
        if followers is None:
            self._advance(offset, settled_bytes)
            return
        followers.core.on_durable(offset)
        self._disk_waiters.release(offset)
        self._advance_shared(followers)

    def _advance(self, high_watermark: Offset, shown_bytes: int) -> None:
        if high_watermark <= self.high_watermark:
            return
        self.high_watermark = high_watermark
        grown_bytes, self._shown_bytes = shown_bytes - self._shown_bytes, shown_bytes
        self._waiters.release(high_watermark)
        self._watchers.tell_of_growth(grown_bytes)

    def _advance_shared(self, followers: Followers) -> None:
        high_watermark = followers.core.high_watermark
        if high_watermark <= self.high_watermark:
            return
        self.high_watermark = high_watermark
        # How many bytes lie below is known only at the end. Readers that are told of too many look, and wait again.
        grown_bytes = self._appended_bytes - self._shown_bytes
        if high_watermark == self.log.end_offset:
            self._shown_bytes = self._appended_bytes
        self._waiters.release(high_watermark)
        self._watchers.tell_of_growth(grown_bytes)
        followers.watchers.tell_of_growth(0)  # no more to read, but news for whenever there is

    def _note_sharing(self) -> None:
        """Something about the followers is other than it was."""
        if self.followers is not None:
            self._advance_shared(self.followers)
        if self._in_sync is not None:
            self._in_sync.note(self)

    def _expect(self, end_offset: Offset, acks: Acks, timeout_ms: int) -> asyncio.Future[None] | None:
        if acks is Acks.ALL or self.followers is None:
            return self.expect(end_offset, timeout_ms)
        if end_offset <= self.reached_offset:
            return None
        return self._wait(self._disk_waiters, end_offset, timeout_ms)

    def _wait(self, waiters: Waiters, end_offset: Offset, timeout_ms: int) -> asyncio.Future[None]:
        if self._has_ended and self._end is not None:  # nothing will come any more
            ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            ended.set_exception(self._end)
            return ended
        return waiters.add(end_offset, self._clock.monotonic_ms() + timeout_ms)


def topic_deleted(name: TopicPartition) -> RopewalkError:
    return UnknownTopic(f"{name} was deleted")


def node_stopping(name: TopicPartition) -> RopewalkError:
    return NodeStopping(f"{name}: the node is shutting down; the outcome of a write in flight is unknown")
