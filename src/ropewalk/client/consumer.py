"""A consumer of partitions, without a group: it keeps its own positions and commits nothing.

What a reader could get wrong
    Records below the position are dropped: a broker sends the whole batch that holds the offset.
    Control batches, empty (compacted) ones and, where only what is committed is read, those of aborted transactions move the position
    and yield nothing.
    Every batch is checked against its CRC before it is opened. One that cannot be opened is raised by the call that would have
    nothing else to return, or by the next: what lies before it, and other partitions, are returned first. The position stays at it.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import CorruptBatch, RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.client.calls.aborted import AbortedTransactions
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.fetch import Fetched
from ropewalk.client.calls.list_offsets import Isolation
from ropewalk.client.errors import UnreadableBatch
from ropewalk.records.batch import BatchHeader, iterate, verify_crc
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
        self._unreadable: UnreadableBatch | None = None
        """Met by the latest call, and not raised yet."""

    async def poll(self, *, wait_ms: int | None = None) -> list[Consumed]:
        """One round of fetching; positions move past what is returned."""
        self._raise_unreadable()
        answers = await self._client.fetch(self.positions, wait_ms=wait_ms, isolation=self._isolation)
        consumed = [self._open(fetched) for fetched in answers]
        if not any(each.records for each in consumed):
            self._raise_unreadable()
        return consumed

    def _raise_unreadable(self) -> None:
        unreadable, self._unreadable = self._unreadable, None
        if unreadable is not None and unreadable.partition in self.positions:
            raise unreadable

    def _open(self, fetched: Fetched) -> Consumed:
        partition = fetched.partition
        position = self.positions[partition]
        records: list[Record] = []
        view = memoryview(fetched.records)
        uses_append_time = False
        aborted = AbortedTransactions(fetched.aborted)
        for start, header in iterate(view):
            if header.end_offset <= position:
                continue
            try:
                opened = _records(view[start : start + header.size_bytes], header, aborted)
            except RopewalkError as error:
                self._unreadable = UnreadableBatch(partition, header.base_offset, header.end_offset, error)
                break
            uses_append_time = header.uses_append_time
            records += [record for record in opened if record.offset >= position]
            position = header.end_offset
        self.positions[partition] = position
        end_offset = (
            fetched.last_stable_offset
            if self._isolation is Isolation.READ_COMMITTED
            else fetched.high_watermark
        )
        return Consumed(partition, tuple(records), end_offset, uses_append_time)


def _records(batch: memoryview, header: BatchHeader, aborted: AbortedTransactions) -> list[Record]:
    if not verify_crc(batch):
        raise CorruptBatch("it fails its CRC")
    return [] if aborted.holds(header, batch) or header.is_control else list(iterate_records(batch))
