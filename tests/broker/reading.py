"""Fetching from partitions that stand alone, without a node around them."""

from collections.abc import Sequence

from ropewalk.base.budget import ByteBudget
from ropewalk.base.errors import UnknownPartition
from ropewalk.base.ids import Offset, TopicId
from ropewalk.base.ports import Pool
from ropewalk.broker.partitions.partition import Partition
from ropewalk.broker.reading.fetch import Fetch
from ropewalk.broker.reading.fetch_session import FetchSession, Interest


class Led:
    """Leads just these partitions."""

    def __init__(self, partitions: Sequence[Partition]) -> None:
        self.partitions = list(partitions)

    def find(self, topic: str, index: int) -> Partition:
        for partition in self.partitions:
            if (partition.name.topic, partition.name.partition) == (topic, index):
                return partition
        raise UnknownPartition(f"{topic}-{index}")

    def find_by_id(self, topic_id: TopicId, index: int) -> Partition:
        for partition in self.partitions:
            if (partition.topic_id, partition.name.partition) == (topic_id, index):
                return partition
        raise UnknownPartition(f"{topic_id!r}-{index}")

    find_copy = find
    find_copy_by_id = find_by_id


async def read(
    partition: Partition, offset: int, pool: Pool, *, wait_ms: int = 0, bytes_min: int = 1
) -> memoryview:
    """Batches of one partition from `offset` on; raises what the partition answers."""
    name = partition.name
    interest = Interest(name.topic, name.partition, Offset(offset), 1 << 20, -1)
    session = FetchSession([interest], topics_by_id=False)
    fetch = Fetch(
        session,
        Led([partition]),
        everyone=True,
        bytes_min=bytes_min,
        bytes_max=1 << 20,
        wait_ms=wait_ms,
        pool=pool,
        budget=ByteBudget(1 << 30),
    )
    (found,) = await fetch.run()
    if found.error is not None:
        raise found.error
    return memoryview(found.records)
