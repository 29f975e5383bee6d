"""Cutting a replica's log back, or beginning it anew, so that no crash on the way takes it for damaged.

The order of things is what matters here. First the recovery point on disk is lowered: what is cut must not be missed at the
next start; nor is it committed any more, so the high watermark that is kept for that start goes down too. If the log is to begin anew, its start comes next: without it, what is appended later would be taken for
something that does not belong there. Then the log is cut.

What a reader could get wrong
    Once begun, a cut runs to its end even if whoever wants it is cancelled: the disk pool cannot be stopped half way, and
    the log belongs to nobody else before.
    A cut that was decided in an epoch that is over is not begun: the next leader may have been told of what would be cut.
"""

import asyncio
from collections.abc import Coroutine

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import LeaderEpoch, Offset, TopicId, TopicPartition
from ropewalk.base.ports import Clock, Pool
from ropewalk.broker.partitions.home import Home
from ropewalk.broker.partitions.log_work import LogWork
from ropewalk.broker.partitions.replica import Replica
from ropewalk.log.log import Log


class Cutting:
    def __init__(self, work: LogWork, pool: Pool, clock: Clock) -> None:
        self._work = work
        self._pool = pool
        self._clock = clock

    async def cut_back(
        self, replica: Replica, home: Home, offset: Offset, *, leader_epoch: LeaderEpoch
    ) -> None:
        """Remove everything from the batch that contains `offset` on. `StorageFailed` if nothing could be begun."""
        await _to_the_end(self._cut_back(replica, home, offset, leader_epoch))

    async def begin_anew(
        self, replica: Replica, home: Home, offset: Offset, *, leader_epoch: LeaderEpoch
    ) -> None:
        """Remove everything; the log begins again at `offset`. As `cut_back`."""
        await _to_the_end(self._begin_anew(replica, home, offset, leader_epoch))

    async def _cut_back(
        self, replica: Replica, home: Home, offset: Offset, leader_epoch: LeaderEpoch
    ) -> None:
        log = replica.log
        with replica.at_work(leader_epoch):
            async with self._work.alone(log):
                if offset >= log.end_offset:
                    return
                home.commits.forget(replica)
                boundary = await self._pool.run(log.trimming.boundary_at, offset)
                log.trimming.plan_cut(boundary)
                try:
                    await self._save_plan(replica, home, boundary)
                except RopewalkError:
                    log.trimming.give_up_cut()
                    raise
                cut = log.trimming.take_cut(boundary, now_ms=self._clock.now_ms())
                await self._pool.run(cut.run)
                log.trimming.on_cut(cut)
                replica.on_cut()
                if log.dirty:
                    home.commits.note(replica)

    async def _begin_anew(
        self, replica: Replica, home: Home, offset: Offset, leader_epoch: LeaderEpoch
    ) -> None:
        log = replica.log
        with replica.at_work(leader_epoch):
            async with self._work.alone(log):
                home.commits.forget(replica)
                replica.lower_high_watermark(offset)
                await begin_log_anew(
                    replica.name, replica.topic_id, log, home, offset, pool=self._pool, clock=self._clock
                )
                replica.on_cut()

    async def _save_plan(self, replica: Replica, home: Home, offset: Offset) -> None:
        replica.lower_high_watermark(offset)
        if home.directory.lower_high_watermark(replica.name, replica.topic_id, offset):
            await home.high_watermarks.save()
        home.directory.note(replica.name, replica.topic_id, replica.log)
        await home.recovery_points.save()


async def begin_log_anew(
    name: TopicPartition, topic_id: TopicId, log: Log, home: Home, offset: Offset, *, pool: Pool, clock: Clock
) -> None:
    """Remove everything; the log begins again at `offset`. Nobody else may use it meanwhile."""
    log.trimming.plan_restart(offset)
    home.directory.note(name, topic_id, log)
    try:
        if home.directory.lower_high_watermark(name, topic_id, offset):
            await home.high_watermarks.save()
        await home.recovery_points.save()
        await home.log_starts.save()
    except RopewalkError:
        log.trimming.give_up_cut()
        home.directory.note(name, topic_id, log)
        raise
    restart = log.trimming.take_restart(offset, now_ms=clock.now_ms())
    await pool.run(restart.run)
    log.trimming.on_cut(restart)


async def _to_the_end(work: Coroutine[object, object, None]) -> None:
    """As awaiting it, but a cancellation is put off until it is done."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        error = task.exception()
        if isinstance(error, RopewalkError) or error is None:
            raise  # whoever wanted the cut has gone, and hears nothing of why it was not made
        raise error from None
