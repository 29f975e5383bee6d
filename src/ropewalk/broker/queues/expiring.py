"""Drops messages that are older than their queue keeps them, though nobody has asked for them.

A core knows when those expire that it has read, and reads what receivers ask for. Of a queue that nobody receives from, as many keep for dead
letters, the log is asked: everything below its first record that is young enough has expired. Then the log can become shorter (`erasing.py`).

What a reader could get wrong
    The log goes by stamps, and doors' clocks are apart: what lies behind a message that is stamped later expires with it, and never earlier than its own stamp says.
    Most queues are looked at when the message expires that was found first, and not before.
"""

import asyncio
from contextlib import suppress
from functools import partial

from msgspec import Struct

from ropewalk.base.errors import RopewalkError
from ropewalk.base.limits import PARTITIONS_PER_TURN, QUEUE_EXPIRY_LOOK_MS_MAX, QUEUE_UPKEEP_MS
from ropewalk.base.ports import Pool
from ropewalk.broker.queues.hosted_queue import HostedQueue
from ropewalk.broker.queues.queues import Queues
from ropewalk.queues.commands import Expire
from ropewalk.runtime.steps import Pace


class _Looked(Struct, frozen=True):
    """When a queue is to be looked at again, as long as it keeps messages for so long."""

    due_ms: int
    retention_ms: int


class Expiring:
    def __init__(self, queues: Queues, pool: Pool) -> None:
        self._queues = queues
        self._pool = pool
        self._pace = Pace(PARTITIONS_PER_TURN)
        self._looked: dict[HostedQueue, _Looked] = {}

    async def run(self) -> None:
        while True:
            await asyncio.sleep(QUEUE_UPKEEP_MS / 1000)
            await self.tick()

    async def tick(self) -> None:
        hosted_queues = list(self._queues)
        self._looked = {hosted: self._looked[hosted] for hosted in hosted_queues if hosted in self._looked}
        for hosted in hosted_queues:
            await self._pace.next()
            if hosted.is_serving and _holds_any(hosted) and self._is_due(hosted):
                with suppress(
                    RopewalkError
                ):  # led elsewhere meanwhile, or it cannot be read or written: it is tried again
                    due_ms = await expire(hosted, self._pool)
                    self._looked[hosted] = _Looked(due_ms, hosted.settings.retention_ms)

    def _is_due(self, hosted: HostedQueue) -> bool:
        looked = self._looked.get(hosted)
        return (
            looked is None
            or looked.due_ms <= hosted.now_ms()
            or looked.retention_ms != hosted.settings.retention_ms
        )


async def expire(hosted: HostedQueue, pool: Pool) -> int:
    """Drop what has expired. Answers when to look again. Raises what keeps the log from being read, or anything from being written."""
    partition, retention_ms, now_ms = hosted.partition, hosted.settings.retention_ms, hosted.now_ms()
    limit_offset = partition.last_stable_offset
    find = partial(partition.log.offset_for_timestamp, now_ms - retention_ms + 1, limit_offset=limit_offset)
    young = await pool.run(find)
    end_offset = limit_offset if young is None else young.offset
    if end_offset > hosted.serving().state.floor:
        hosted.ask(Expire(end_offset))
    soonest_ms = now_ms + retention_ms if young is None else young.timestamp + retention_ms
    return min(soonest_ms, now_ms + QUEUE_EXPIRY_LOOK_MS_MAX)


def _holds_any(hosted: HostedQueue) -> bool:
    return hosted.serving().known_count > 0 or hosted.unread_message_count() > 0
