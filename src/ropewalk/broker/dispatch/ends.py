"""Where the partitions of a topic end, asked of their leaders."""

import asyncio
from functools import partial

from ropewalk.base.errors import QueueNotReady, RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.base.limits import FORWARD_MS_MAX
from ropewalk.broker.dispatch.dispatch import Dispatch
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.broker.peers.calls.list_offsets import Extent, extent_of
from ropewalk.metadata.image import Topic
from ropewalk.runtime.errands import Errands


class Ends:
    def __init__(self, partitions: Partitions, dispatch: Dispatch, errands: Errands) -> None:
        self._partitions = partitions
        self._dispatch = dispatch
        self._errands = errands

    async def of(self, topic: Topic) -> tuple[int, ...]:
        """Raises `QueueNotReady` where a partition is not led at present. May be called where there is no task."""
        return await self._errands.begin(self._ask(topic))

    async def _ask(self, topic: Topic) -> tuple[int, ...]:
        partitions = [TopicPartition(topic.name, partition.index) for partition in topic.partitions]
        return tuple(await asyncio.gather(*map(self._end, partitions)))

    async def _end(self, partition: TopicPartition) -> int:
        leader = self._dispatch.leader(partition)
        if leader is None:
            raise QueueNotReady(f"nobody leads {partition} at present, so nobody knows where it ends")
        try:
            _, end_offset = await self._dispatch.to_node(
                leader,
                here=partial(self._here, partition),
                there=partial(extent_of, partition),
                timeout_ms=FORWARD_MS_MAX,
            )
        except RopewalkError as error:
            raise QueueNotReady(f"node {leader} does not say where {partition} ends: {error}") from None
        return end_offset

    async def _here(self, partition: TopicPartition) -> Extent:
        log = self._partitions.find_copy(partition.topic, partition.partition).log
        return log.leader_epoch_latest, log.end_offset
