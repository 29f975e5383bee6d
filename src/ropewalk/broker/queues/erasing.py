"""Shortens the logs of queues to what is not deleted, and has snapshots written that somebody waits for.

    held up    DeleteRecords, retention or a full disk would have the log start beyond a queue's last snapshot: another is written, and
               when that is committed the log starts where it was wanted to
    erase      `queue.delete=erase`: the log starts at the first message that is not deleted

Invariants
    No log starts beyond the last whole snapshot that is committed and on this disk.

What a reader could get wrong
    To erase more, a snapshot is written where that is little beside what was written since the last, or nothing more is being written. An idle
    queue writes none.
"""

import asyncio
from contextlib import suppress

import structlog

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import Offset
from ropewalk.base.limits import PARTITIONS_PER_TURN, QUEUE_ERASED_TOGETHER_MAX, QUEUE_UPKEEP_MS
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.broker.queues.hosted_queue import HostedQueue
from ropewalk.broker.queues.queues import Queues
from ropewalk.runtime.steps import Pace

_log = structlog.get_logger()


class Erasing:
    def __init__(self, queues: Queues, partitions: Partitions) -> None:
        self._queues = queues
        self._partitions = partitions
        self._pace = Pace(PARTITIONS_PER_TURN)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(QUEUE_UPKEEP_MS / 1000)
            await self.tick()

    async def tick(self) -> None:
        due: list[tuple[HostedQueue, Offset]] = []
        for hosted in self._queues:
            await self._pace.next()
            if hosted.is_serving and hosted.partition.log.has_room:
                offset = start_of(hosted, erases=self._queues.erases(hosted))
                if offset > hosted.partition.log.start_offset:
                    due.append((hosted, offset))
        for first in range(0, len(due), QUEUE_ERASED_TOGETHER_MAX):
            await asyncio.gather(
                *[self._trim(*each) for each in due[first : first + QUEUE_ERASED_TOGETHER_MAX]]
            )

    async def _trim(self, hosted: HostedQueue, offset: Offset) -> None:
        with suppress(RopewalkError):  # led elsewhere meanwhile, or the disk is full: it is tried again
            await self._partitions.trim(hosted.partition, offset)


def start_of(hosted: HostedQueue, *, erases: bool) -> Offset:
    """Where the log may start now. Has a snapshot written where the last one holds it up."""
    partition, log, owner = hosted.partition, hosted.partition.log, hosted.queue.queue_id
    is_quiet = hosted.snapshots.is_quiet()
    start_offset, wanted_offset = log.start_offset, log.trimming.wanted_start_offset
    place = log.places.last_of(owner)
    if place is None or place.whole_offset >= min(partition.high_watermark, log.durable_offset):
        return start_offset  # its first snapshot, or another, is on its way
    if wanted_offset > start_offset:
        holders = set(log.trimming.held_up_by())
        if place.start_offset < wanted_offset:
            hosted.write_snapshot()
        elif holders <= {owner}:  # by a place that no longer counts
            start_offset = min(wanted_offset, partition.high_watermark)
    if not erases:
        return start_offset
    floor = hosted.serving().state.floor
    snapshots = hosted.snapshots
    if floor > place.whole_offset and snapshots.grown_bytes and (snapshots.is_cheap or is_quiet):
        hosted.write_snapshot()
    return max(start_offset, Offset(min(floor, place.start_offset)))
