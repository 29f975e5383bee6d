"""Reading for consumers and replicas: find what is there, wait for more if that is too little, then read it.

What a reader could get wrong
    Only bytes below the high watermark count towards `bytes_min` (facts of the protocol, KIP-74), and the
    first batch is given even if it is larger than every bound.
    Bytes in the page cache that this process has verified are read on the loop; everything else is read
    and verified in the disk pool, so a cold consumer never stalls the others.
    Whoever wants committed records alone (read_committed) is given none beyond the last stable offset, and is told which
    aborted transactions have records among those that it gets: they are found when the records are, because
    compaction could remove both while the disk is waited for.
    A replica is given everything up to the log's end, and what it asks for counts as what it holds: the leader is told,
    once for every time that it names the partition, if its log continues the leader's. Otherwise it hears where they part.
    A fetch ends its wait for bytes or for an error. That a log has lost its beginning is only told along with them, unless
    the reader stood there, which is an error, or is a replica, for which whoever deleted the records waits.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from ropewalk.base.budget import ByteBudget
from ropewalk.base.errors import (
    FetchSessionEpochInvalid,
    OffsetNotAvailable,
    OffsetOutOfRange,
    RopewalkError,
    StorageFailed,
    TopicNotAuthorized,
    UnknownEpoch,
)
from ropewalk.base.ids import LeaderEpoch, NodeId, Offset
from ropewalk.base.ports import Pool
from ropewalk.broker.access import Reader
from ropewalk.broker.partitions.hosted import Hosted
from ropewalk.broker.partitions.hosted_partitions import HostedPartitions
from ropewalk.broker.partitions.partition import Partition
from ropewalk.broker.reading.fetch_session import FetchSession, Found, Interest, ReplicaReader
from ropewalk.broker.reading.leader_throttle import LeaderThrottle
from ropewalk.log.aborted import AbortedLookup
from ropewalk.log.epochs import EpochEnd
from ropewalk.records.batch import iterate
from ropewalk.replication.lineage import OutOfRange, find_divergence

Nearest: TypeAlias = Callable[[Partition, Offset], NodeId | None]


class Fetch:
    """One fetch of a session. Made for a single `run`."""

    def __init__(
        self,
        session: FetchSession,
        hosted: HostedPartitions,
        *,
        everyone: bool,
        bytes_min: int,
        bytes_max: int,
        wait_ms: int,
        pool: Pool,
        budget: ByteBudget,
        nearest: Nearest | None = None,
        throttle: LeaderThrottle | None = None,
        reader: Reader | None = None,
    ) -> None:
        """`everyone`: the answer names every partition of the session, not only those with news.

        `nearest` names the replica that the reader should ask instead, if there is a better one. `throttle` holds back what
        replicas out of sync are given. `reader` says what may be read; without one, everything.
        """
        self._session = session
        self._hosted = hosted
        self._everyone = everyone
        self._bytes_min = min(bytes_min, bytes_max)
        self._bytes_max = bytes_max
        self._wait_ms = wait_ms if len(session) else 0
        self._pool = pool
        self._budget = budget
        self._nearest = nearest
        self._throttle = throttle
        self._reader = reader
        self._room: asyncio.Future[None] | None = None
        self._found_bytes = 0
        self._reserved_bytes = 0
        self._woken: asyncio.Future[None] | None = None
        self._missing_bytes = 0
        self._is_time_over = False
        self.waited_ms = 0.0
        """For records, as the reader wished."""
        self.is_abandoned = False
        """Nobody is there to be answered any more."""

    async def run(self) -> list[Found]:
        """What the answer has to name. Never raises for a single partition's trouble.

        Raises `FetchSessionEpochInvalid` if a later fetch took the session meanwhile. Of an abandoned fetch the session has
        told nothing.
        """
        session = self._session
        session.begin(self)
        if self._reader is not None and session.decided_by != self._reader.version:
            self._decide_anew()
        if session.unreported:
            self._report()
        looked_at, is_enough = self._look()
        if not is_enough and self._wait_ms > 0 and not self._is_time_over:
            looked_at = await self._wait()
        if self._found_bytes and self._budget.is_spent:
            looked_at = await self._wait_for_room()
        try:
            cold = self._read_cached(looked_at)
            if cold:
                await self._read_cold(cold)
        finally:
            if self._reserved_bytes:
                self._budget.give_back(self._reserved_bytes)
        if session.fetch is not self:
            raise FetchSessionEpochInvalid(f"fetch session {session.id} was used by another fetch meanwhile")
        session.fetch = None
        if self.is_abandoned:
            return []
        if self._reader is not None and session.decided_by != self._reader.version:
            _withhold(looked_at, self._reader)  # the disk was waited for
        for found in looked_at:
            if found.partition is not None:
                found.partition.fetched_bytes += len(found.records)
                if self._throttle is not None and not _is_in_sync(found.interest, found.partition):
                    self._throttle.charge(len(found.records))
        return session.tell(looked_at, everyone=self._everyone)

    def hurry(self) -> None:
        """Wait no more, and answer with what there is."""
        self._is_time_over = True
        self._wake()

    def abandon(self) -> None:
        """Wait no more; nobody will read the answer."""
        self.is_abandoned = True
        self._wake()
        if self._room is not None:
            self._room.cancel()

    def on_growth(self, grown_bytes: int) -> None:
        self._missing_bytes -= grown_bytes
        if self._missing_bytes <= 0:
            self._wake()

    def on_change(self) -> None:
        self._wake()

    async def _wait(self) -> list[Found]:
        loop = asyncio.get_running_loop()
        session = self._session
        began_s = loop.time()
        timer = loop.call_later(self._wait_ms / 1000, self.hurry)
        session.watch()
        if self._reader is not None:
            self._reader.watch(self._decide_anew)
        try:
            while True:
                self._woken = loop.create_future()
                await self._woken
                looked_at, is_enough = self._look()
                if is_enough or self._is_over():
                    break
        finally:
            if self._reader is not None:
                self._reader.unwatch(self._decide_anew)
        timer.cancel()
        self.waited_ms = (loop.time() - began_s) * 1000
        if not session.id:
            session.unwatch()
        return looked_at

    async def _wait_for_room(self) -> list[Found]:
        """The node's budget is spent: read only what there is room for, or nothing if nobody wants it any more."""
        count_bytes = self._found_bytes
        self._room = self._budget.grant(count_bytes)
        try:
            await self._room
        except asyncio.CancelledError:
            if not self.is_abandoned:
                raise
            return []
        self._reserved_bytes = count_bytes
        return self._look()[0]

    def _read_cached(self, looked_at: list[Found]) -> list[Found]:
        """Read what is quick to read; answers what is not."""
        cold = []
        for found in looked_at:
            if found.span is not None:
                if found.interest.committed_only:
                    found.lookup = _aborted(found)
                records = found.span.read_cached()
                if records is None:
                    cold.append(found)
                else:
                    found.records = records
                    if found.lookup is not None and not _name_aborted(found, found.lookup):
                        cold.append(found)
        return cold

    async def _read_cold(self, cold: list[Found]) -> None:
        if not self._reserved_bytes:
            # Nobody else counts these bytes until the answer is made.
            self._reserved_bytes = self._found_bytes
            self._budget.take(self._reserved_bytes)
        await asyncio.gather(*(_read_cold(found, self._pool) for found in cold))

    def _decide_anew(self) -> None:
        """Other rules, or another reader: every partition is looked at again, also those that have no news."""
        assert self._reader is not None, "only what readers may read changes"
        self._session.decided_by = self._reader.version
        self._session.mark_all()
        self._wake()

    def _is_over(self) -> bool:
        """Whether to make do with what there is: the time is over, or nothing more will be heard."""
        return (
            self._is_time_over
            or self.is_abandoned
            or self._session.fetch is not self
            or not self._session.is_watching
        )

    def _wake(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    def _report(self) -> None:
        """Tell leaders how far a replica has come, in all partitions that it named, before any of them is read."""
        session = self._session
        unreported, session.unreported = session.unreported, []
        for interest in unreported:
            with suppress(RopewalkError):  # found again, and told, when the partition is looked at
                partition = interest.partition or interest.find(self._hosted)
                partition.check_readable()
                partition.check_epoch(interest.leader_epoch)
                _report(interest, partition)

    def _look(self) -> tuple[list[Found], bool]:
        """Find what each partition that is due may give, within one budget for all; and whether it is worth an answer."""
        session, everyone = self._session, self._everyone
        looked_at: list[Found] = []
        found_bytes = 0
        is_full = has_error = has_start = False
        for interest in session.due:
            budget = max(0, min(interest.bytes_max, self._bytes_max - found_bytes))
            if is_full and not everyone:
                break  # the others keep their places
            found = Found(interest, interest.partition)
            looked_at.append(found)
            try:
                if self._reader is not None:
                    self._reader.check(interest.topic)
                partition = interest.partition
                if partition is None:
                    found.partition = partition = interest.find(self._hosted)
                    partition.check_readable()
                    session.on_found(interest, partition)
                else:
                    partition.check_readable()
                partition.check_epoch(interest.leader_epoch)
                if interest.replica is not None and not interest.is_reported:
                    found.diverging = _report(interest, partition)
                elif self._nearest is not None and isinstance(partition, Partition):
                    found.preferred = self._nearest(partition, interest.offset)
                if found.sends_away:
                    has_error = True
                    continue
                if interest.replica is not None:
                    _check_missed(interest, interest.replica, partition)
                if interest.replica is not None and interest.misses_start(partition):
                    has_start = True
                if is_full or self._is_held_back(interest, partition):
                    partition.log.check_offset(interest.offset)
                    continue
                limit_offset = interest.limit_offset(partition)
                if interest.may_be_copy:
                    _check_reached(interest, partition)
                if interest.committed_only:
                    interest.is_held_back = limit_offset < partition.high_watermark
                span = partition.log.locate(interest.offset, limit_offset=limit_offset, bytes_max=budget)
            except RopewalkError as error:
                found.error = error
                has_error = True
                continue
            if span is None:
                continue
            if found_bytes and span.size_bytes > budget:
                is_full = budget < interest.bytes_max
                continue  # only the first batch of an answer may be larger than what was asked for
            found.span = span
            found_bytes += span.size_bytes
            is_full = found_bytes >= self._bytes_max
        self._found_bytes = found_bytes
        self._missing_bytes = self._bytes_min - found_bytes
        return looked_at, self._missing_bytes <= 0 or is_full or has_error or has_start

    def _is_held_back(self, interest: Interest, partition: Hosted) -> bool:
        """Whether the replica has to wait for its share of what those out of sync may be sent."""
        throttle = self._throttle
        return throttle is not None and throttle.is_spent and not _is_in_sync(interest, partition)


def _withhold(looked_at: list[Found], reader: Reader) -> None:
    """Take back what was read and may no more be."""
    for found in looked_at:
        try:
            reader.check(found.interest.topic)
        except TopicNotAuthorized as error:
            found.records, found.aborted, found.error = b"", (), error


def _check_reached(interest: Interest, partition: Hosted) -> None:
    """Of a place that a copy has not reached it cannot say that there is none: only the leader knows where the log ends."""
    if interest.offset > partition.log.end_offset and not isinstance(partition, Partition):
        raise OffsetNotAvailable(f"{partition.name}: this copy has not got to offset {interest.offset} yet")


def _is_in_sync(interest: Interest, partition: Hosted) -> bool:
    """Whether producers wait for this reader."""
    replica = interest.replica
    return (
        replica is not None
        and isinstance(partition, Partition)
        and partition.followers is not None
        and replica.node_id in partition.followers.core.isr
    )


def _report(interest: Interest, partition: Hosted) -> EpochEnd | None:
    """Tell the leader how far a replica has come, or answer where its log parts from the leader's."""
    replica = interest.replica
    assert replica is not None, "consumers are not reported"
    assert isinstance(partition, Partition), "replicas read from leaders only"
    followers = partition.followers
    if followers is None or not followers.include(replica.node_id):
        raise UnknownEpoch(f"{partition.name} has not heard of a replica on node {replica.node_id} yet")
    diverging = find_divergence(
        partition.log,
        fetch_offset=interest.offset,
        last_fetched_epoch=LeaderEpoch(interest.last_fetched_epoch),
    )
    if isinstance(diverging, OutOfRange):
        raise OffsetOutOfRange(
            f"{partition.name} begins at {diverging.start_offset} and has nothing that follows offset {interest.offset}"
        )
    if diverging is None:
        _check_missed(interest, replica, partition)
        interest.is_reported = True
        followers.on_fetch(
            replica.node_id, replica.broker_epoch, interest.offset, Offset(interest.start_offset)
        )
    return diverging


def _check_missed(interest: Interest, replica: ReplicaReader, partition: Hosted) -> None:
    """Send a replica back to the start of the log if the leader has removed deletions that it was never told of.

    Each time before something is found for it: they may have been removed while it waited. What is found is not touched by that.
    """
    followers = partition.followers if isinstance(partition, Partition) else None
    if followers is not None and followers.have_missed(
        replica.node_id, replica.broker_epoch, interest.offset
    ):
        raise OffsetOutOfRange(
            f"{partition.name} has removed deletions that a replica at offset {interest.offset} was not told of"
        )


async def _read_cold(found: Found, pool: Pool) -> None:
    assert found.span is not None
    assert found.partition is not None
    try:
        if not len(found.records):
            found.records = await pool.run(found.span.read)
            found.partition.log.on_read(found.span)
        if found.lookup is not None and not _name_aborted(found, found.lookup):
            found.aborted = await pool.run(found.lookup.run)
    except RopewalkError as error:
        found.records, found.error = b"", error
    except OSError as error:
        found.records, found.error = b"", StorageFailed(f"{found.partition.name}: {error}")


def _aborted(found: Found) -> AbortedLookup | None:
    """Those with records from the reader's place on, up to where it may read; None if there are none."""
    interest, partition = found.interest, found.partition
    assert partition is not None
    lookup = partition.log.aborted_in(interest.offset, interest.limit_offset(partition))
    return None if lookup.at_hand == () else lookup


def _name_aborted(found: Found, lookup: AbortedLookup) -> bool:
    """Name those that have to do with the records that were read; False if files must be read for it."""
    end_offset = found.interest.offset
    for _, header in iterate(found.records):
        end_offset = header.end_offset
    found.lookup = lookup = lookup.narrowed(end_offset)
    if lookup.at_hand is None:
        return False
    found.aborted, found.lookup = lookup.at_hand, None
    return True
