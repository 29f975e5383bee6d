"""Committed records of a queue's log: what transactions took back and what brokers wrote between the records is passed over.

reading = find(partition, offset, …)
passage = reading.read_cached()            on the loop; None if it would wait for the disk
passage = await pool.run(reading.read)     in the disk pool
reading.on_read()                          on the loop, after that
"""

from collections.abc import Collection

import structlog
from msgspec import Struct

from ropewalk.base.errors import CorruptBatch, RopewalkError, StorageFailed, UnsupportedCompression
from ropewalk.base.ids import Offset
from ropewalk.base.ports import Pool
from ropewalk.broker.partitions.partition import Partition
from ropewalk.log.aborted import AbortedLookup, AbortedTransaction
from ropewalk.log.span import Span
from ropewalk.records.batch import iterate
from ropewalk.records.record import Record, decode_records

_log = structlog.get_logger()


class Passage(Struct, frozen=True):
    """All messages of a stretch of a log. A batch that its sender made so that nobody can open it holds none."""

    start_offset: int
    end_offset: int
    records: tuple[Record, ...]


class Reading:
    __slots__ = ("_lookup", "_partition", "_span", "_start_offset")

    def __init__(self, partition: Partition, span: Span, lookup: AbortedLookup, start_offset: int) -> None:
        self._partition = partition
        self._span = span
        self._lookup = lookup
        self._start_offset = start_offset

    def read_cached(self) -> Passage | None:
        """Raises what `read` does."""
        aborted = self._lookup.at_hand
        data = self._span.read_cached() if aborted is not None else None
        return None if data is None or aborted is None else _opened(data, self._start_offset, aborted)

    def read(self) -> Passage:
        """Blocks. Raises `StorageFailed`, and `OffsetOutOfRange` where it was deleted meanwhile."""
        try:
            return _opened(self._span.read(), self._start_offset, self._lookup.run())
        except OSError as error:
            raise StorageFailed(f"{self._partition.name}: {error}") from error

    def on_read(self) -> None:
        self._partition.log.on_read(self._span)


def find(partition: Partition, offset: int, *, limit_offset: int, bytes_max: int) -> Reading | None:
    """Whole batches from the one with `offset` on; None where nothing below the limit is committed and decided."""
    limit_offset = min(limit_offset, partition.last_stable_offset)
    span = partition.log.locate(Offset(offset), limit_offset=Offset(limit_offset), bytes_max=bytes_max)
    if span is None:
        return None
    lookup = partition.log.aborted_in(Offset(offset), Offset(limit_offset))
    return Reading(partition, span, lookup, offset)


async def read_records(
    partition: Partition, offsets: Collection[int], pool: Pool, *, bytes_max: int
) -> dict[int, Record]:
    """Those of the offsets that are still in the log, and messages. May be awaited where there is no task.

    Raises `StorageFailed` where the log cannot be read.
    """
    found: dict[int, Record] = {}
    wanted = sorted(offsets)
    while wanted:
        partition.check_readable()
        first = wanted[0]
        if first < partition.log.start_offset:
            del wanted[0]
            continue
        reading = find(partition, first, limit_offset=partition.log.end_offset, bytes_max=bytes_max)
        if reading is None:
            break
        try:
            passage = reading.read_cached()
            if passage is None:
                passage = await pool.run(reading.read)
                reading.on_read()
        except StorageFailed:
            raise
        except RopewalkError:  # deleted meanwhile
            del wanted[0]
            continue
        for record in passage.records:
            if record.offset in offsets:
                found[record.offset] = record
        end_offset = max(passage.end_offset, first + 1)
        wanted = [offset for offset in wanted if offset >= end_offset]
    return found


def _opened(data: bytes | memoryview, start_offset: int, aborted: tuple[AbortedTransaction, ...]) -> Passage:
    records: list[Record] = []
    end_offset = start_offset
    view = memoryview(data)
    for position, header in iterate(data):
        end_offset = header.end_offset
        if header.is_control:
            continue
        if (
            aborted
            and header.is_transactional
            and any(
                each.producer_id == header.producer_id
                and each.first_offset <= header.base_offset <= each.last_offset
                for each in aborted
            )
        ):
            continue
        try:
            opened = decode_records(view[position : position + header.size_bytes])
        except (CorruptBatch, UnsupportedCompression) as error:  # its bytes are those that were sent
            _log.warning(
                "a batch that cannot be opened is passed over", offset=header.base_offset, reason=str(error)
            )
            continue
        if header.base_offset < start_offset:
            opened = [each for each in opened if each.offset >= start_offset]
        records += opened
    return Passage(start_offset, end_offset, tuple(records))
