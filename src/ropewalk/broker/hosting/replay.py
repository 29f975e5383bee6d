"""Read a shard's log from its start to its end, as what compaction would leave of it.

Of all events of one key only the last counts (`Keyed.encode` promises it), so only the last is decoded: a group that
commits every second for a week is read in the time that its bytes take, and applied once.

Reading and decoding happen in the disk pool, a stretch at a time, and a load hands out few events at once, so a long log
delays nobody else on the loop.

What a reader could get wrong
    A key's last event comes where that event lies among those of other keys; for one of a transaction that is its
    marker's place. What is pending at the end of the log comes last.
    An event that cannot be decoded goes unnoticed if a later one has replaced it: nothing is forgotten by that.
    With very many keys at once an event may come that a later one replaces.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import islice
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

from ropewalk.base.ids import Offset
from ropewalk.base.limits import SHARD_REPLAY_BYTES, SHARD_REPLAY_EVENTS, SHARD_REPLAY_KEYS_MAX
from ropewalk.base.ports import Pool
from ropewalk.broker.hosting.latest_records import LatestRecords, RawEvent
from ropewalk.broker.partitions.partition import Partition
from ropewalk.log.log import Span
from ropewalk.records.batch import iterate

E = TypeVar("E")
Decode = Callable[[bytes, bytes | None], E | None]


class Happened(Struct, Generic[E], frozen=True):
    """Events that count."""

    events: list[E]


class Pending(Struct, Generic[E], frozen=True):
    """Events of a transaction that is open at the end of the log: they count when it is committed."""

    producer_id: int
    events: list[E]


Passage: TypeAlias = Happened[E] | Pending[E]


async def replay(
    partition: Partition, decode: Decode[E], *, end_offset: Offset, pool: Pool
) -> AsyncIterator[Passage[E]]:
    """What lies below `end_offset`, to be applied in this order, a turn of the loop's worth at a time.

    Raises `StorageFailed` where the log cannot be read and `InvalidRecord` where an event cannot: what was
    acknowledged would be forgotten if either were skipped.
    """
    log = partition.log
    latest = LatestRecords()
    offset = log.start_offset
    while offset < end_offset:
        partition.check_readable()
        span = log.locate(offset, limit_offset=end_offset, bytes_max=SHARD_REPLAY_BYTES)
        if span is None:
            break
        offset = await pool.run(_read, span, latest)
        log.on_read(span)
        if len(latest) >= SHARD_REPLAY_KEYS_MAX:
            for slice_ in _slices(latest.take()):
                yield Happened(await pool.run(_decoded, slice_, decode))
    for slice_ in _slices(latest.take()):
        yield Happened(await pool.run(_decoded, slice_, decode))
    for producer_id, event in latest.pending():
        yield Pending(producer_id, _decoded([event], decode))


def _read(span: Span, latest: LatestRecords) -> Offset:
    """Runs in the disk pool. Answers where the next stretch begins."""
    data = bytes(span.read())
    end_offset = Offset(-1)
    for position, header in iterate(data):
        latest.add(data, position, header)
        end_offset = header.end_offset
    return end_offset


def _slices(events: Iterator[RawEvent]) -> Iterator[list[RawEvent]]:
    while slice_ := list(islice(events, SHARD_REPLAY_EVENTS)):
        yield slice_


def _decoded(events: Sequence[RawEvent], decode: Decode[E]) -> list[E]:
    decoded = (decode(key, value) for key, value in events)
    return [event for event in decoded if event is not None]
