"""One partition that another node leads, and that this one keeps a copy of.

Nobody writes here but the fetcher that copies from the leader, and nobody waits. The leader tells the high watermark.

Invariants
    What is fetched next is what follows `reached_offset`: with `flush=group` the durable offset. The leader takes it as
    proof that everything before it survives a power cut.
    The high watermark never passes `reached_offset`, whatever the leader says.

What a reader could get wrong
    The log outlives this object: when the node becomes the leader, a `Partition` takes it over. That has to wait until
    nobody works at the log in the disk pool (`idle`).
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from ropewalk.base.errors import OffsetNotAvailable, RopewalkError
from ropewalk.base.ids import LeaderEpoch, NodeId, Offset, TopicId, TopicPartition
from ropewalk.broker.partitions.leader_epochs import check_leader_epoch
from ropewalk.broker.partitions.watchers import Watcher, Watchers
from ropewalk.log.log import Log, SyncTargets
from ropewalk.log.storage import Removal
from ropewalk.records.batch import BatchHeader


class Commits(Protocol):
    """Where a replica says that it holds bytes that are not yet durable."""

    def note(self, replica: "Replica") -> None: ...


class Replica:
    def __init__(
        self,
        name: TopicPartition,
        topic_id: TopicId,
        log: Log,
        *,
        leader: NodeId | None,
        leader_epoch: LeaderEpoch,
        high_watermark: Offset,
        durable_first: bool,
        in_memory: bool,
        commits: Commits,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.log = log
        self.leader = leader
        """None while nobody leads."""

        self.leader_epoch = leader_epoch
        self.durable_first = durable_first
        self.in_memory = in_memory
        self.high_watermark = high_watermark
        self._told_high_watermark = high_watermark
        self.fetched_bytes = 0
        """Given to readers since this object was made."""

        self._commits = commits
        self._watchers = Watchers()
        self._end: RopewalkError | None = None
        self.is_over = False
        """Whether the log is no longer this object's."""

        self._segment_count = log.segment_count
        self._appended_bytes = 0
        self._shown_bytes = 0
        self._at_work: asyncio.Future[None] | None = None
        self._advance()

    is_replicated = True
    """Whether others keep copies too, so that the high watermark is not simply how far this one is durable."""

    is_copied_anew = False
    """Nobody copies from here who has to be told of deletions."""

    @property
    def reached_offset(self) -> Offset:
        """Up to here the copy counts."""
        return self.log.durable_offset if self.durable_first else self.log.end_offset

    @property
    def last_stable_offset(self) -> Offset:
        """Below it no transaction is undecided. It moves only when the high watermark does."""
        return self.log.stable_offset(self.high_watermark)

    @property
    def appended_bytes(self) -> int:
        """Of all batches since this object was made."""
        return self._appended_bytes

    @property
    def watcher_count(self) -> int:
        return len(self._watchers)

    def append(self, batch: memoryview, header: BatchHeader, now_ms: int) -> None:
        """Write a batch as the leader wrote it; raises what `Log.append_as_follower` does."""
        self.check_readable()
        self.log.append_as_follower(batch, header, now_ms=now_ms)
        self._appended_bytes += header.size_bytes
        if self.durable_first:
            self._commits.note(self)
        elif self.log.segment_count != self._segment_count:
            # Where nobody waits for the disk, closed segments still have to get there, for the recovery point.
            self._segment_count = self.log.segment_count
            self._commits.note(self)

    def know_high_watermark(self, high_watermark: Offset) -> None:
        """What the leader says; it counts as far as the copy reaches."""
        self._told_high_watermark = high_watermark
        self._advance()

    def begin_sync(self) -> SyncTargets:
        return self.log.sync_targets()

    def on_durable(self, end_offset: Offset) -> None:
        self.log.on_synced(end_offset)
        self._advance()

    def set_durable_first(self, durable_first: bool) -> None:
        self.durable_first = durable_first
        if self.log.dirty and self._at_work is None:  # whoever cuts the log has it synced afterwards
            self._commits.note(self)

    def set_leader(self, leader: NodeId | None, leader_epoch: LeaderEpoch) -> None:
        is_news = leader_epoch != self.leader_epoch
        self.leader, self.leader_epoch = leader, leader_epoch
        if is_news:
            self._watchers.tell_of_change()

    def take_removal(self, *, start_offset_durable: Offset) -> Removal | None:
        """As `Trimming.take_removal`, and tell readers if the start has moved."""
        before = self.log.start_offset
        removal = self.log.trimming.take_removal(start_offset_durable=start_offset_durable)
        if self.log.start_offset != before:
            self._watchers.tell_of_change()
        return removal

    def begin_at(self, offset: Offset) -> None:
        """The cluster says that what is below was deleted. It says so again after a power cut."""
        if offset > self.log.start_offset:
            self.log.begin_at(offset)
            self._watchers.tell_of_change()

    def expire(self, now_ms: float) -> None:
        """Nobody waits here."""

    def check_epoch(self, caller_epoch: int) -> None:
        check_leader_epoch(self.name, self.leader_epoch, caller_epoch)

    def check_readable(self) -> None:
        if self._end is not None:
            raise self._end.with_traceback(None)  # one error, raised often: it would remember every time
        if self._at_work is not None:
            raise OffsetNotAvailable(f"{self.name} is being brought in step with its leader")

    def watch(self, watcher: Watcher) -> None:
        self._watchers.add(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        self._watchers.remove(watcher)

    def refuse(self, reason: RopewalkError) -> None:
        """Take no more from here on."""
        self._end = reason

    def end(self, reason: RopewalkError) -> None:
        """Refuse, and send everybody who reads here away."""
        self.refuse(reason)
        self.is_over = True
        self._watchers.end()

    @contextmanager
    def at_work(self, leader_epoch: LeaderEpoch) -> Iterator[None]:
        """While this lasts the log is changed in the disk pool, and belongs to whoever does so.

        Not begun where records are refused, nor on the word of a leader whose epoch is over.
        """
        if self._end is not None:
            raise self._end.with_traceback(None)
        self.check_epoch(leader_epoch)
        assert self._at_work is None, f"{self.name}: two are at work at once"
        self._at_work = asyncio.get_running_loop().create_future()
        try:
            yield
        finally:
            self._at_work.set_result(None)
            self._at_work = None

    @property
    def is_at_work(self) -> bool:
        return self._at_work is not None

    async def idle(self) -> None:
        """Return when nobody works at the log. Refuse first, or somebody may begin again."""
        while self._at_work is not None:
            await asyncio.shield(self._at_work)

    def lower_high_watermark(self, offset: Offset) -> None:
        """What lies above `offset` is about to be cut; until the leader tells another, this is how far it is committed."""
        self.high_watermark = self._told_high_watermark = min(self.high_watermark, offset)

    def on_cut(self) -> None:
        """The log was cut back or begun anew. The high watermark goes back with it, though no further than it has to."""
        self._segment_count = self.log.segment_count
        self.lower_high_watermark(self.reached_offset)
        self._watchers.tell_of_change()

    def _advance(self) -> None:
        high_watermark = min(self._told_high_watermark, self.reached_offset)
        if high_watermark <= self.high_watermark:
            return
        self.high_watermark = high_watermark
        grown_bytes = self._appended_bytes - self._shown_bytes
        if high_watermark == self.log.end_offset:
            self._shown_bytes = self._appended_bytes
        self._watchers.tell_of_growth(grown_bytes)
