"""Which replica of a partition holds most, asked of the nodes themselves: before one out of sync is made to lead.

What a reader could get wrong
    The one whose last records are of the newest epoch holds most, whatever the ends are: a longer log of an older epoch ends in
    records that a later leader never had.
    A node that does not answer in time is not waited for. What it holds may be more.
"""

import asyncio
from collections.abc import Mapping
from functools import partial

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.base.limits import FURTHEST_COPY_MS_MAX
from ropewalk.broker.dispatch.dispatch import Dispatch
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.broker.peers.calls.list_offsets import Extent, extent_of
from ropewalk.metadata.image import Image


class FurthestCopy:
    def __init__(self, image: Image, partitions: Partitions, dispatch: Dispatch) -> None:
        self._image = image
        self._partitions = partitions
        self._dispatch = dispatch

    async def find(self, topic: str, index: int) -> NodeId | None:
        """None where no replica that is in service says what it holds. Of equals the first."""
        replicas = self._image.partition(topic, index).replicas
        there = [node_id for node_id in replicas if self._is_in_service(node_id)]
        partition = TopicPartition(topic, index)
        told = await asyncio.gather(*(self._held_by(node_id, partition) for node_id in there))
        return furthest(
            {node_id: held for node_id, held in zip(there, told, strict=True) if held is not None}
        )

    def _is_in_service(self, node_id: NodeId) -> bool:
        broker = self._image.brokers.get(node_id)
        return broker is not None and broker.is_active

    async def _held_by(self, node_id: NodeId, partition: TopicPartition) -> Extent | None:
        try:
            return await self._dispatch.to_node(
                node_id,
                here=partial(self._held_here, partition),
                there=partial(extent_of, partition),
                timeout_ms=FURTHEST_COPY_MS_MAX,
            )
        except RopewalkError:
            return None

    async def _held_here(self, partition: TopicPartition) -> Extent:
        log = self._partitions.find_copy(partition.topic, partition.partition).log
        return log.leader_epoch_latest, log.end_offset


def furthest(told: Mapping[NodeId, Extent]) -> NodeId | None:
    """Who holds most of those who told; of equals the first."""
    return max(told, key=told.__getitem__, default=None)
