"""Copies that were found damaged while the cluster counts on them: given up, and made whole from others.

A read or the scrub finds that a range is damaged. The node then registers again and names the copy, as it would after a start: it
leaves the replicas in sync, another node leads, and the follower that it becomes cuts its log before the damage and copies the rest again.

What a reader could get wrong
    To register again takes the node out of service for a moment. That is the price of using the one way by which a node gives
    up what it was counted on for; nothing that was under way can count on it any more, since its epoch is another.
    A copy is given up only where another node in service has it in sync. The last one serves everything but the damage.
"""

import asyncio
from collections.abc import Callable

import structlog

from ropewalk.base.ids import NodeId, TopicId
from ropewalk.base.limits import DAMAGE_CHECK_MS, PARTITIONS_PER_TURN, REPAIR_INTERVAL_MS_MIN
from ropewalk.base.ports import Clock
from ropewalk.broker.partitions.hosted import Hosted
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.metadata.image import Image
from ropewalk.runtime.steps import Pace

_log = structlog.get_logger()


class Wholeness:
    def __init__(self, node_id: NodeId, image: Image, partitions: Partitions, clock: Clock) -> None:
        self._node_id = node_id
        self._image = image
        self._partitions = partitions
        self._clock = clock
        self._again_at_ms = 0.0

    def damaged(self) -> frozenset[tuple[TopicId, int]]:
        """All damaged copies, for a process that has yet to register: nobody counts on what it does not know of."""
        return frozenset(_key(each) for each in self._partitions if each.log.damaged)

    def given_up(self) -> frozenset[tuple[TopicId, int]]:
        """Those of the damaged copies that others can do without."""
        return frozenset(
            _key(each) for each in self._partitions if each.log.damaged and self._is_spared(each)
        )

    async def run(self, register_again: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(DAMAGE_CHECK_MS / 1000)
            await self.tick(register_again)

    async def tick(self, register_again: Callable[[], None]) -> None:
        """Look for copies to give up. On a disk that goes on rotting that must not become all that the node does."""
        await self._partitions.save_damage()
        found = []
        pace = Pace(PARTITIONS_PER_TURN)
        for each in self._partitions:
            await pace.next()
            if each.log.damaged and self._is_spared(each):
                found.append(str(each.name))
        now_ms = self._clock.monotonic_ms()
        if not found or now_ms < self._again_at_ms:
            return
        self._again_at_ms = now_ms + REPAIR_INTERVAL_MS_MIN
        _log.warning("damaged copies are given up, to be copied again from other nodes", partitions=found)
        register_again()

    def _is_spared(self, partition: Hosted) -> bool:
        """Whether this copy is counted on, and another could be instead."""
        topic = self._image.topics_by_id.get(partition.topic_id)
        if topic is None or partition.in_memory:
            return False
        facts = topic.partitions[partition.name.partition]
        others = (self._image.brokers.get(member) for member in facts.isr if member != self._node_id)
        is_counted_on = self._node_id in facts.isr or self._node_id in facts.eligible
        return is_counted_on and any(other is not None and other.is_active for other in others)


def _key(partition: Hosted) -> tuple[TopicId, int]:
    return partition.topic_id, partition.name.partition
