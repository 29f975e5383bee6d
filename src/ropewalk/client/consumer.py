"""A consumer of partitions, without a group: it keeps its own positions and commits nothing.

What a reader could get wrong
    Records below the position are dropped: a broker sends the whole batch that holds the offset.
    Control batches and empty (compacted) batches move the position and yield nothing.
    Every batch is checked against its CRC before it is opened.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import CorruptBatch
from ropewalk.base.ids import TopicPartition
from ropewalk.client.client import Client
from ropewalk.client.fetch import Fetched
from ropewalk.client.list_offsets import Isolation
from ropewalk.records.batch import iterate, verify_crc
from ropewalk.records.record import Record, iterate_records


class Consumed(Struct, frozen=True, gc=False):
    """Records of one partition, in order, and where the partition ended when they were read."""

    partition: TopicPartition
    records: tuple[Record, ...]
    end_offset: int
    uses_append_time: bool = False


class Consumer:
    def __init__(
        self,
        client: Client,
        positions: Mapping[TopicPartition, int],
        *,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
    ) -> None:
        self._client = client
        self._isolation = isolation
        self.positions: Final = dict(positions)
        """The next offset to read of each partition. Take a partition out and it is no longer read."""

    async def poll(self, *, wait_ms: int | None = None) -> list[Consumed]:
        """One round of fetching; positions move past what is returned."""
        answers = await self._client.fetch(self.positions, wait_ms=wait_ms, isolation=self._isolation)
        return [self._open(fetched) for fetched in answers]

    def _open(self, fetched: Fetched) -> Consumed:
        partition = fetched.partition
        position = self.positions[partition]
        records: list[Record] = []
        view = memoryview(fetched.records)
        uses_append_time = False
        for start, header in iterate(view):
            batch = view[start : start + header.size_bytes]
            if not verify_crc(batch):
                raise CorruptBatch(
                    f"{partition} has a batch at offset {header.base_offset} that fails its CRC"
                )
            uses_append_time = header.uses_append_time
            if header.end_offset <= position:
                continue
            if not header.is_control:
                records += [record for record in iterate_records(batch) if record.offset >= position]
            position = header.end_offset
        self.positions[partition] = position
        end_offset = (
            fetched.last_stable_offset
            if self._isolation is Isolation.READ_COMMITTED
            else fetched.high_watermark
        )
        return Consumed(partition, tuple(records), end_offset, uses_append_time)
