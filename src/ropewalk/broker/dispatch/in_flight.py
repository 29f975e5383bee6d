"""A bound for the messages that a queue has in flight over all of its partitions, which several nodes lead.

A leader whose partition has more than its even share asks the others how many they have, every while, and gives out no more than they leave. As long as nobody has more, all together
cannot be above the bound, and nobody asks.

What a reader could get wrong
    Between two looks partitions may give out more. SQS calls its figure approximate, too; no partition alone ever goes beyond it.
    A partition that cannot be asked counts as empty: nobody receives from it either.
"""

import asyncio
from collections.abc import Awaitable
from typing import Protocol

from ropewalk.base.errors import RopewalkError
from ropewalk.base.limits import PARTITIONS_PER_TURN, QUEUE_IN_FLIGHT_LOOK_MS
from ropewalk.broker.queues.hosted_queue import HostedQueue
from ropewalk.broker.queues.queues import Queues
from ropewalk.metadata.queues import Queue
from ropewalk.queues.messages import Totals
from ropewalk.runtime.steps import Pace


class TellsTotals(Protocol):
    def partition_count(self, queue: Queue) -> int:
        """Raises `QueueNotReady` where nothing is known of it."""

    def totals_of(self, queue: Queue, index: int) -> Awaitable[Totals]:
        """Of one partition, whoever leads it. May raise at once."""


class InFlight:
    def __init__(self, queues: Queues, to_queues: TellsTotals) -> None:
        self._queues = queues
        self._to_queues = to_queues
        self._pace = Pace(PARTITIONS_PER_TURN)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(QUEUE_IN_FLIGHT_LOOK_MS / 1000)
            await self.tick()

    async def tick(self) -> None:
        asking: list[tuple[HostedQueue, int]] = []
        for hosted in self._queues:
            await self._pace.next()
            core = hosted.core
            if core is None or not (core.held_count or core.held_elsewhere_count):
                continue
            try:
                partition_count = self._to_queues.partition_count(hosted.queue)
            except RopewalkError:
                continue
            if partition_count > 1 and core.held_count * partition_count > hosted.settings.in_flight_max:
                asking.append((hosted, partition_count))
            else:
                hosted.note_held_elsewhere(0)
        await asyncio.gather(*[self._look(*each) for each in asking])

    async def _look(self, hosted: HostedQueue, partition_count: int) -> None:
        others = [index for index in range(partition_count) if index != hosted.index]
        hosted.note_held_elsewhere(
            sum(await asyncio.gather(*[self._held_at(hosted.queue, index) for index in others]))
        )

    async def _held_at(self, queue: Queue, index: int) -> int:
        try:
            return (await self._to_queues.totals_of(queue, index)).in_flight_count
        except RopewalkError:
            return 0
