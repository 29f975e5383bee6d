"""Producer ids for idempotent producers, one by one from blocks that the metadata log hands out."""

from collections.abc import Sequence

from ropewalk.base.ids import NodeId, ProducerId
from ropewalk.broker.cluster import Cluster
from ropewalk.controller.producer_ids import ProducerIdBlock, allocated_block, decide_allocate_producer_ids
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import MetadataRecord, ProducerIdsAllocated


class ProducerIds:
    def __init__(self, cluster: Cluster, node_id: NodeId) -> None:
        self._cluster = cluster
        self._node_id = node_id
        self._next = ProducerId(0)
        self._end = ProducerId(0)

    async def next(self) -> ProducerId:
        """An id that nobody else was or will be given."""
        if self._next >= self._end:
            block = await self._allocate()
            # Two callers may each have got a block meanwhile; the rest of the earlier one is never used.
            self._next, self._end = block.start, block.end
        producer_id = self._next
        self._next = ProducerId(producer_id + 1)
        return producer_id

    async def _allocate(self) -> ProducerIdBlock:
        decided: list[ProducerIdsAllocated] = []

        def decide(image: Image) -> Sequence[MetadataRecord]:
            records = decide_allocate_producer_ids(image, self._node_id)
            decided[:] = [record for record in records if isinstance(record, ProducerIdsAllocated)]
            return records

        await self._cluster.propose(decide)
        return allocated_block(decided[0])
