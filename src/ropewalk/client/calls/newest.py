"""The newest record of each key in a topic that is kept by key, as far as it counts.

What a reader could get wrong
    Readers of committed records stop at the first transaction that is undecided, whoever's it is: behind it the newest record of a key would not be
    seen while a stranger's process hangs. So everything is read here, and a transaction's records count when its marker is met. Compaction keeps
    the marker of a transaction for as long as any record of it.
    Who has taken over a transactional id finds all that was ever written under it decided, since brokers finish that first. Records of others may be
    undecided still; they do not count yet.
    Keys that are written often are found at the end of their partition, and only the others make it be read from further back.
"""

from collections.abc import Iterable

from ropewalk.base.errors import CorruptBatch, TimedOut
from ropewalk.base.ids import TopicPartition
from ropewalk.base.limits import NEWEST_OFFSETS_FIRST, NEWEST_OFFSETS_GROWTH
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.list_offsets import OffsetQuery
from ropewalk.client.calls.partitioner import partition_for_key
from ropewalk.client.errors import RemoteError, UnreadableBatch
from ropewalk.records.batch import BatchHeader, iterate, verify_crc
from ropewalk.records.marker import read_marker
from ropewalk.records.record import Record, iterate_records
from ropewalk.wire.error_code import ErrorCode


async def newest(
    client: Client, topic: str, partition_count: int, keys: Iterable[bytes]
) -> dict[bytes, Record]:
    """Of those keys that there is a record of. They lie where Java's clients put them."""
    by_partition: dict[int, set[bytes]] = {}
    for key in keys:
        by_partition.setdefault(partition_for_key(key, partition_count), set()).add(key)
    ends = await client.list_offsets(topic, dict.fromkeys(by_partition, OffsetQuery.LATEST))
    found: dict[bytes, Record] = {}
    for index, wanted in by_partition.items():
        found |= await _in_partition(client, TopicPartition(topic, index), ends[index].offset, wanted)
    return found


async def _in_partition(
    client: Client, partition: TopicPartition, end_offset: int, keys: set[bytes]
) -> dict[bytes, Record]:
    back = NEWEST_OFFSETS_FIRST
    while True:
        start_offset = max(0, end_offset - back)
        decided = Decided(keys)
        await _read(client, partition, start_offset, end_offset, decided)
        if start_offset == 0 or len(decided.found) == len(keys):
            return decided.found
        back *= NEWEST_OFFSETS_GROWTH


class Decided:
    """What counts of the batches that it is shown, in order."""

    def __init__(self, keys: set[bytes]) -> None:
        self._keys = keys
        self._undecided: dict[int, dict[bytes, Record]] = {}
        """By producer."""
        self.found: dict[bytes, Record] = {}

    def add(self, header: BatchHeader, batch: memoryview) -> None:
        if header.is_control:
            marker = read_marker(batch) if header.producer_id >= 0 else None
            written = {} if marker is None else self._undecided.pop(header.producer_id, {})
            if marker is not None and marker.committed:
                self.found |= written
            return
        records = {
            bytes(record.key): record
            for record in iterate_records(batch)
            if record.key is not None and bytes(record.key) in self._keys
        }
        if not records:
            return
        if header.is_transactional:
            self._undecided.setdefault(header.producer_id, {}).update(records)
        else:
            self.found |= records


async def _read(
    client: Client, partition: TopicPartition, position: int, end_offset: int, decided: Decided
) -> None:
    session = client.session
    deadline_ms = session.deadline_ms()
    while position < end_offset:
        if session.clock.monotonic_ms() > deadline_ms:
            raise TimedOut(f"{partition} was read up to {position} of {end_offset} in the time there was")
        try:
            answers = await client.fetch({partition: position}, deadline_ms=deadline_ms)
        except RemoteError as error:
            if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            listed = await client.list_offsets(partition.topic, {partition.partition: OffsetQuery.EARLIEST})
            earliest = listed[partition.partition].offset
            if earliest <= position:
                raise
            position = earliest
            continue
        for answer in answers:
            view = memoryview(answer.records)
            for start, header in iterate(view):
                if position < header.end_offset and header.base_offset < end_offset:
                    batch = view[start : start + header.size_bytes]
                    if not verify_crc(batch):
                        raise UnreadableBatch(
                            partition, header.base_offset, header.end_offset, CorruptBatch("it fails its CRC")
                        )
                    decided.add(header, batch)
                    position = header.end_offset
