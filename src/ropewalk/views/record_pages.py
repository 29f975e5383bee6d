"""Some records of a topic, from given offsets on: those that are wanted, and where to go on, after so much has been looked at and no more.

What a reader could get wrong
    Looking changes nothing: there is no group, and nothing is committed.
    It is bounded by what is looked at, not by what is found. A filter that nothing fits ends as soon as one that everything does, and says how
    far it came.
    Batches are opened in the pool, since one may be many megabytes when it is; one that cannot be opened is passed over and counted.
    What transactions have aborted is among them, and what is not decided yet.
"""

from collections import deque
from collections.abc import Mapping
from functools import partial

from msgspec import Struct

from ropewalk.base.errors import CorruptBatch, UnsupportedCompression
from ropewalk.base.ids import TopicPartition
from ropewalk.base.ports import Pool
from ropewalk.client.calls.client import Client
from ropewalk.records.batch import iterate
from ropewalk.records.record import Record, iterate_records
from ropewalk.views.record_filters import Filter
from ropewalk.wire.types import Buffer


class Found(Struct, frozen=True):
    partition: int
    record: Record
    is_transactional: bool


class Bounds(Struct, frozen=True):
    """When to stop looking."""

    count_max: int
    """Of records that are wanted."""
    looked_at_max: int
    bytes_max: int
    """Of batches, as they lie in the log."""
    until_ms: float
    """Of the monotonic clock."""


class RecordPage(Struct, frozen=True):
    found: tuple[Found, ...]
    looked_at: int
    unreadable: int
    """Batches that could not be opened."""
    positions: Mapping[int, int]
    """Where to go on, by partition; without those that were read to their end."""


class _Opened(Struct, frozen=True):
    found: list[Found]
    looked_at: int
    unreadable: int
    position: int


async def read_records(
    client: Client,
    pool: Pool,
    topic: str,
    positions: Mapping[int, int],
    ends: Mapping[int, int],
    wanted: Filter,
    bounds: Bounds,
    *,
    newest: bool,
) -> RecordPage:
    """From the positions to the ends. With `newest` the last that are wanted are kept, and otherwise the first, each partition having its part."""
    left = {index: offset for index, offset in positions.items() if offset < ends[index]}
    found: list[Found] = []
    last: dict[int, deque[Found]] = {}
    """Of each partition, where the newest are wanted."""
    clock = client.session.clock
    looked_at = unreadable = bytes_read = 0
    while left and (newest or len(found) < bounds.count_max):
        is_over = (
            looked_at >= bounds.looked_at_max
            or bytes_read >= bounds.bytes_max
            or clock.monotonic_ms() >= bounds.until_ms
        )
        if is_over:
            break
        answers = await client.fetch(
            {TopicPartition(topic, index): offset for index, offset in left.items()},
            wait_ms=0,
            deadline_ms=client.session.deadline_ms(),
        )
        room = bounds.count_max - len(found)
        part = bounds.looked_at_max if newest else max(1, room // len(left))
        moved = False
        for answer in answers:
            index = answer.partition.partition
            if not newest and len(found) >= bounds.count_max:
                break
            opened = await pool.run(
                partial(
                    _open,
                    answer.records,
                    index,
                    left[index],
                    ends[index],
                    wanted,
                    part,
                    bounds.looked_at_max - looked_at,
                )
            )
            if newest:
                last.setdefault(index, deque(maxlen=bounds.count_max)).extend(opened.found)
            else:
                found += opened.found
            looked_at += opened.looked_at
            unreadable += opened.unreadable
            bytes_read += len(memoryview(answer.records))
            moved = moved or opened.position > left[index]
            left[index] = opened.position
        left = {index: offset for index, offset in left.items() if offset < ends[index]}
        if (
            not moved
        ):  # an end that a transaction has not decided, or a leader that has moved: ask again another time
            break
    found += (each for of_partition in last.values() for each in of_partition)
    found.sort(key=lambda each: (each.record.timestamp, each.partition, each.record.offset))
    return RecordPage(tuple(found[-bounds.count_max :]), looked_at, unreadable, left)


def _open(
    records: Buffer, index: int, position: int, end: int, wanted: Filter, count_max: int, looked_at_max: int
) -> _Opened:
    """Of one partition, until so many are found, or looked at."""
    found: list[Found] = []
    looked_at = unreadable = 0
    view = memoryview(records)
    for start, header in iterate(view):
        if header.end_offset <= position:
            continue
        if header.base_offset >= end:
            return _Opened(found, looked_at, unreadable, end)
        if not header.is_control:
            try:
                for record in iterate_records(view[start : start + header.size_bytes]):
                    if not position <= record.offset < end:
                        continue
                    if len(found) >= count_max or looked_at >= looked_at_max:
                        return _Opened(found, looked_at, unreadable, position)
                    looked_at += 1
                    position = record.offset + 1
                    if wanted(record):
                        found.append(Found(index, record, header.is_transactional))
            except (CorruptBatch, UnsupportedCompression):
                unreadable += 1
        position = max(position, header.end_offset)
    return _Opened(found, looked_at, unreadable, position)
