"""Read a shard's log from its start to its end, as events.

Reading and decoding happen in the disk pool, a stretch at a time, so a long log delays nobody else on the loop.
"""

from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from ropewalk.base.ids import Offset
from ropewalk.base.limits import SHARD_REPLAY_BYTES
from ropewalk.base.ports import Pool
from ropewalk.broker.partition import Partition
from ropewalk.log.log import Span
from ropewalk.records.batch import iterate
from ropewalk.records.record import iterate_records

E = TypeVar("E")
Decode = Callable[[bytes, bytes | None], E | None]


async def replay(
    partition: Partition, decode: Decode[E], *, end_offset: Offset, pool: Pool
) -> AsyncIterator[list[E]]:
    """The events below `end_offset`, in order, in lists of one stretch each.

    Raises `StorageFailed` where the log cannot be read and `InvalidRecord` where an event cannot: what was
    acknowledged would be forgotten if either were skipped.
    """
    log = partition.log
    offset = log.start_offset
    while offset < end_offset:
        partition.check_readable()
        span = log.locate(offset, limit_offset=end_offset, bytes_max=SHARD_REPLAY_BYTES)
        if span is None:
            return
        events, offset = await pool.run(_read, span, decode)
        log.on_read(span)
        yield events


def _read(span: Span, decode: Decode[E]) -> tuple[list[E], Offset]:
    """Runs in the disk pool. Answers the events, and where the next stretch begins."""
    data = memoryview(span.read())
    events: list[E] = []
    end_offset = Offset(-1)
    for position, header in iterate(data):
        end_offset = header.end_offset
        if header.is_control or not header.record_count:
            continue
        for record in iterate_records(data[position : position + header.size_bytes]):
            event = decode(record.key or b"", record.value)
            if event is not None:
                events.append(event)
    return events, end_offset
