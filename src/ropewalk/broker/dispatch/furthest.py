"""Which replica of a partition holds most, asked of the nodes themselves: before one out of sync is made to lead.

What a reader could get wrong
    The one whose last records are of the newest epoch holds most, whatever the ends are: a longer log of an older epoch ends in
    records that a later leader never had.
    A node that does not answer in time is not waited for. What it holds may be more.
"""

import asyncio
from collections.abc import Mapping
from typing import TypeAlias

from ropewalk.base.errors import ProtocolError, RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import FURTHEST_COPY_MS_MAX
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.broker.peers.peers import Lane, PeerLinks
from ropewalk.client.errors import RemoteError
from ropewalk.metadata.image import Image
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import list_offsets

Held: TypeAlias = tuple[int, int]
"""The epoch of the last records, and where they end."""


class FurthestCopy:
    def __init__(
        self, node_id: NodeId, image: Image, partitions: Partitions, links: PeerLinks | None
    ) -> None:
        """Without links on a node that is alone."""
        self._node_id = node_id
        self._image = image
        self._partitions = partitions
        self._links = links

    async def find(self, topic: str, index: int) -> NodeId | None:
        """None where no replica that is in service says what it holds. Of equals the first."""
        replicas = self._image.partition(topic, index).replicas
        there = [node_id for node_id in replicas if self._is_in_service(node_id)]
        told = await asyncio.gather(*(self._held_by(node_id, topic, index) for node_id in there))
        return furthest(
            {node_id: held for node_id, held in zip(there, told, strict=True) if held is not None}
        )

    def _is_in_service(self, node_id: NodeId) -> bool:
        broker = self._image.brokers.get(node_id)
        return broker is not None and broker.is_active

    async def _held_by(self, node_id: NodeId, topic: str, index: int) -> Held | None:
        try:
            if node_id == self._node_id:
                log = self._partitions.find_copy(topic, index).log
                return log.leader_epoch_latest, log.end_offset
            return await self._ask(node_id, topic, index)
        except RopewalkError:
            return None

    async def _ask(self, node_id: NodeId, topic: str, index: int) -> Held:
        assert self._links is not None, "a node that is alone holds all there is"
        asked = list_offsets.ListOffsetsPartition(index=index, timestamp=list_offsets.LATEST)
        request = list_offsets.ListOffsetsRequest(
            replica_id=list_offsets.ANY_COPY, topics=(list_offsets.ListOffsetsTopic(topic, (asked,)),)
        )
        deadline_ms = self._links.clock.monotonic_ms() + FURTHEST_COPY_MS_MAX
        link = self._links.to_node(node_id, Lane.CALLS)
        response = await link.call(list_offsets.API, request, deadline_ms=deadline_ms)
        for answer in (each for topic_answer in response.topics for each in topic_answer.partitions):
            if answer.error_code != ErrorCode.NONE:
                raise RemoteError(answer.error_code, about=f"{topic}-{index} on node {node_id}")
            return answer.leader_epoch, answer.offset
        raise ProtocolError(f"node {node_id} answered ListOffsets without a word about {topic}-{index}")


def furthest(told: Mapping[NodeId, Held]) -> NodeId | None:
    """Who holds most of those who told; of equals the first."""
    return max(told, key=told.__getitem__, default=None)
