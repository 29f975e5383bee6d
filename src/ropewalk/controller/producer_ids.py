"""Handing out producer ids in blocks.

A broker asks for a block and gives its ids to producers one by one; what is left of it when the broker stops is
never used. Two producers can so never share an id, at the cost of one metadata record per block.
"""

from typing import Final

from msgspec import Struct

from ropewalk.base.errors import InvalidRequest
from ropewalk.base.ids import NodeId, ProducerId
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import MetadataRecord, ProducerIdsAllocated

PRODUCER_ID_BLOCK: Final = 1_000


class ProducerIdBlock(Struct, frozen=True):
    start: ProducerId
    end: ProducerId
    """Exclusive."""


def decide_allocate_producer_ids(image: Image, node_id: NodeId) -> list[MetadataRecord]:
    if image.end_producer_id > 2**63 - 1 - PRODUCER_ID_BLOCK:
        raise InvalidRequest("every producer id has been handed out")
    return [ProducerIdsAllocated(node_id, ProducerId(image.end_producer_id + PRODUCER_ID_BLOCK))]


def allocated_block(record: ProducerIdsAllocated) -> ProducerIdBlock:
    """The block that a committed record stands for."""
    return ProducerIdBlock(ProducerId(record.end_producer_id - PRODUCER_ID_BLOCK), record.end_producer_id)
