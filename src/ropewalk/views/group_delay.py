"""How far a group is behind in time: since when the record lies there that it has to read next.

What a reader could get wrong
    A record is read for it, which takes the right to read the topic, and as many requests as there are partitions. So whoever asks says how
    many at most; the others, and those that cannot be read, are left out.
    Timestamps are what producers say, unless the topic has LogAppendTime. One in the future is no time at all.
    What was committed before the log's start is gone: the oldest record that is left counts.
"""

from collections.abc import Iterable

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.list_offsets import OffsetQuery
from ropewalk.client.calls.together import together
from ropewalk.client.errors import RemoteError
from ropewalk.records.batch import iterate
from ropewalk.records.record import iterate_records
from ropewalk.views.answering import deadline_ms
from ropewalk.views.group_lag import PartitionLag
from ropewalk.wire.error_code import ErrorCode


async def measure_delays(
    client: Client, rows: Iterable[PartitionLag], *, now_ms: int, count_max: int
) -> dict[TopicPartition, int]:
    """In milliseconds, of so many of the partitions that are furthest behind."""
    behind = sorted((each for each in rows if each.lag), key=lambda each: -(each.lag or 0))[:count_max]
    written = await together(
        [_written_at(client, TopicPartition(each.topic, each.partition), each.committed) for each in behind]
    )
    return {
        TopicPartition(each.topic, each.partition): max(0, now_ms - at_ms)
        for each, at_ms in zip(behind, written, strict=True)
        if at_ms is not None
    }


async def _written_at(client: Client, partition: TopicPartition, offset: int | None) -> int | None:
    """When the first record at or after the offset was written; None where that cannot be known."""
    if offset is None:
        return None
    until_ms = deadline_ms(client)
    try:
        try:
            return await _first_at(client, partition, offset, until_ms)
        except RemoteError as error:
            if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
        listed = await client.list_offsets(
            partition.topic, {partition.partition: OffsetQuery.EARLIEST}, deadline_ms=until_ms
        )
        return await _first_at(client, partition, listed[partition.partition].offset, until_ms)
    except RopewalkError:  # a figure that is left out; whoever may not read the topic sees the others
        return None


async def _first_at(client: Client, partition: TopicPartition, offset: int, until_ms: float) -> int | None:
    for answer in await client.fetch({partition: offset}, wait_ms=0, deadline_ms=until_ms):
        view = memoryview(answer.records)
        for start, header in iterate(view):
            if header.is_control or header.end_offset <= offset:
                continue
            for record in iterate_records(view[start : start + header.size_bytes]):
                if record.offset >= offset:
                    return record.timestamp if record.timestamp >= 0 else None
    return None
